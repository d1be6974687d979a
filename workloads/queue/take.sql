begin;
-- Deletes nothing if all jobs are locked or the queue is empty.
delete from job where id = (select id from job order by id limit 1 for update skip locked);
commit;
