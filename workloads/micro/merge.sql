\set id random(1, :rows)
merge into account a using (values (:id::int)) n (id) on a.id = n.id
when matched then update set balance = balance + 1 when not matched then insert values (n.id, 1, 0, '');
