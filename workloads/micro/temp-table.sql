begin;
create temp table some_rows on commit drop as select n from generate_series(1, 10) n;
select sum(n) from some_rows;
commit;
