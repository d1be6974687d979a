\set id random(1, :rows)
update account set balance = balance + 1 where id = :id;
