\set id random(1, 200)
update large set data = substr(data, 2) || left(data, 1) where id = :id;
