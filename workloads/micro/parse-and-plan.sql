\set id random(1, :rows)
select look_up(:id);
