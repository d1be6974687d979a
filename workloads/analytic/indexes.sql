alter table region add primary key (id);
alter table nation add primary key (id);
alter table supplier add primary key (id);
alter table part add primary key (id);
alter table part_supplier add primary key (part, supplier);
alter table customer add primary key (id);
alter table orders add primary key (id);
alter table order_line add primary key (order_id, line);

alter table nation add foreign key (region) references region;
alter table supplier add foreign key (nation) references nation;
alter table part_supplier add foreign key (part) references part;
alter table part_supplier add foreign key (supplier) references supplier;
alter table customer add foreign key (nation) references nation;
alter table orders add foreign key (customer) references customer;
alter table order_line add foreign key (order_id) references orders;
alter table order_line add foreign key (part, supplier) references part_supplier;

create index nation_region on nation (region);
create index supplier_nation on supplier (nation);
create index part_supplier_supplier on part_supplier (supplier);
create index customer_nation on customer (nation);
create index orders_customer on orders (customer);
create index orders_ordered on orders (ordered);
create index order_line_part_supplier on order_line (part, supplier);
create index order_line_supplier on order_line (supplier);
create index order_line_shipped on order_line (shipped);
