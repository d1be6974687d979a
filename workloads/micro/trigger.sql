\set id random(1, :rows / 10)
update watched set value = value + 1 where id = :id;
