delete from sale
where id = any (array(select id from sale order by id limit :batch::int for update skip locked));
