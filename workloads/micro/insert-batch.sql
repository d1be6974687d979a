\set step :step + 1
\set key (:client_id + 1) * 1000000000 + :step * 100
insert into entry select :key::bigint + n, now(), 'a new entry' from generate_series(1, 100) n;
\if :step % 10 = 0
delete from entry where id > :key::bigint - 900 and id <= :key::bigint + 100;
\endif
