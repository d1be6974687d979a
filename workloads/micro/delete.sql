\if :step % 100 = 0
insert into entry
select (:client_id::bigint + 1) * 1000000000 + :step + n, now(), 'to be deleted' from generate_series(1, 100) n;
\endif
\set step :step + 1
\set key (:client_id + 1) * 1000000000 + :step
delete from entry where id = :key;
