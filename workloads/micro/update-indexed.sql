\set id random(1, :rows)
\set branch random(0, 999)
update account set branch = :branch where id = :id;
