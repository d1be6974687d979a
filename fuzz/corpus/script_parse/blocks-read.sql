\set t 1 + :client_id % :tables
\set first random(1, :size / 8192 - :work_unit + 1)
select read_blocks(:t, :first, :work_unit);
