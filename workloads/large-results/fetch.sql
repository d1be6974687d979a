\set first random(1, 100000 * :scale - :rows + 1)
select * from pgbench_accounts where aid between :first and :first + :rows::int - 1;
