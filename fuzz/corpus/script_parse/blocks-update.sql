\set t 1 + :client_id % :tables
\set first random(1, :size / 8192 - :update_unit + 1)
select update_blocks(:t, :first, :update_unit);
