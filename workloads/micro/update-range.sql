\set first random(1, :rows - 99)
update account set balance = balance + 1 where id between :first and :first + 99;
