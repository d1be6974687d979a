-- The oldest rows that no other session deletes. Where they begin is looked up now and then only: before them, the index has
-- entries of deleted rows.
\if :deletes % 100 = 0
select coalesce(min(id), 0) as oldest from sale \gset
\endif
\set deletes :deletes + 1
delete from sale
where id = any (array(
    select id from sale where id >= :oldest order by id limit :batch::int for update skip locked));
