\set step :step + 1
\set key (:client_id + 1) * 1000000000 + :step
insert into entry values (:key, now(), 'a new entry');
\if :step % 100 = 0
delete from entry where id between :key::bigint - 99 and :key;
\endif
