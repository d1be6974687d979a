begin;
savepoint s;
\set id random(1, :rows)
update account set balance = balance + 1 where id = :id;
release s;
savepoint s;
\set id random(1, :rows)
update account set balance = balance + 1 where id = :id;
release s;
savepoint s;
\set id random(1, :rows)
update account set balance = balance + 1 where id = :id;
release s;
savepoint s;
\set id random(1, :rows)
update account set balance = balance + 1 where id = :id;
release s;
savepoint s;
\set id random(1, :rows)
update account set balance = balance + 1 where id = :id;
release s;
savepoint s;
\set id random(1, :rows)
update account set balance = balance + 1 where id = :id;
release s;
savepoint s;
\set id random(1, :rows)
update account set balance = balance + 1 where id = :id;
release s;
savepoint s;
\set id random(1, :rows)
update account set balance = balance + 1 where id = :id;
release s;
savepoint s;
\set id random(1, :rows)
update account set balance = balance + 1 where id = :id;
release s;
savepoint s;
\set id random(1, :rows)
update account set balance = balance + 1 where id = :id;
release s;
commit;
