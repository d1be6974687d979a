\set first random(1, :rows / 2 - 9)
select sum(p.number) from item i join part p on p.item = i.id where i.id between :first and :first + 9;
