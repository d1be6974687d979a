\if :step = 0
set max_parallel_workers_per_gather = 0;
\set step 1
\endif
select count(*) from item where price = -1;
