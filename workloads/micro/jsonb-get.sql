\set id random(1, :rows / 5)
select body ->> 'name', body #>> '{address,lines,1}' from document where id = :id;
