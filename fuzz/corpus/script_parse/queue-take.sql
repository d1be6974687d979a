begin;
-- None where all that are there are taken: then there is nothing to delete.
delete from job where id = (select id from job order by id limit 1 for update skip locked);
commit;
