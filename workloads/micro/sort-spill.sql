\if :step = 0
set work_mem = '64kB';
\set step 1
\endif
\set first random(1, :rows - 9999)
select label from item where id between :first and :first + 9999 order by label offset 9999;
