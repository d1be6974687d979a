\set step :step + 1
\set key (:client_id + 1) * 1000000000 + :step
\set item random(1, :rows)
insert into child values (:key, :item);
\if :step % 100 = 0
delete from child where id between :key::bigint - 99 and :key;
\endif
