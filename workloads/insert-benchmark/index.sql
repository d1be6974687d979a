create index sale_product on sale (product, customer, price);
create index sale_register on sale (register, customer, price);
create index sale_price on sale (price, at, customer);
