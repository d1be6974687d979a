\set id random(1, :rows / 5)
select count(*) from phrase where words like '%' || substr(md5(:id::text), 9, 12) || '%';
