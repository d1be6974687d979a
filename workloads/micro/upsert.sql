\set id random(1, :rows)
insert into account values (:id, 1, 0, '') on conflict (id) do update set balance = account.balance + excluded.balance;
