-- The oldest rows that no other session deletes. Before them, the index has entries of deleted rows: the search begins behind the rows that
-- this session has deleted, since the ones before them are deleted by others, if at all. The id of the oldest row is read now and then.
\if :deletes % 1000 = 0
select coalesce(min(id), 0) as oldest from sale \gset
\endif
\set deletes :deletes + 1
with deleted as (
    delete from sale
    where id = any (array(
        select id from sale where id >= :oldest order by id limit :batch::int for update skip locked))
    returning id)
select coalesce(max(id) + 1, :oldest) as oldest from deleted \gset
