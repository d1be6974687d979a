-- The oldest rows that no other session deletes. Before them, the index has entries of deleted rows: where they begin is looked up
-- now and then, mostly from where they began before on, and until then it is at least as far as the rows that this session has deleted.
\if :deletes % 1000 = 0
select coalesce(min(id), 0) as oldest from sale \gset
\elif :deletes % 100 = 0
select coalesce(min(id), :oldest) as oldest from sale where id >= :oldest \gset
\endif
\set deletes :deletes + 1
delete from sale
where id = any (array(
    select id from sale where id >= :oldest order by id limit :batch::int for update skip locked));
\set oldest :oldest + :batch
