insert into job (task) values (repeat('x', 100));
