\set id random(1, 10)
update account set balance = balance + 1 where id = :id;
