\if :client_id = 0
begin isolation level repeatable read;
select count(*) from account;
\sleep :hold_ms ms
select sum(balance) from account;
commit;
\else
\set id random(1, :rows)
update account set balance = balance + 1 where id = :id;
\endif
