begin;
create temp table some_rows (n int) on commit drop;
insert into some_rows select n from generate_series(1, 10) n;
select sum(n) from some_rows;
commit;
