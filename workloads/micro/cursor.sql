\set first random(1, :rows - 99)
begin;
declare some_rows cursor for select id, label from item where id between :first and :first + 99;
fetch 50 from some_rows;
fetch 50 from some_rows;
commit;
