create table warehouse (
    id          int not null,
    name        varchar(10) not null,
    street      varchar(40) not null,
    city        varchar(20) not null,
    state       char(2) not null,
    zip         char(9) not null,
    tax         numeric(4,4) not null,
    ytd         numeric(12,2) not null      -- paid this year
) with (fillfactor = 50);

create table district (
    warehouse   int not null,
    id          int not null,
    name        varchar(10) not null,
    street      varchar(40) not null,
    city        varchar(20) not null,
    state       char(2) not null,
    zip         char(9) not null,
    tax         numeric(4,4) not null,
    ytd         numeric(12,2) not null,
    next_order  int not null
) with (fillfactor = 50);

create table customer (
    warehouse   int not null,
    district    int not null,
    id          int not null,
    first       varchar(16) not null,
    middle      char(2) not null,
    last        varchar(16) not null,
    street      varchar(40) not null,
    city        varchar(20) not null,
    state       char(2) not null,
    zip         char(9) not null,
    phone       char(16) not null,
    since       timestamptz not null,
    credit      char(2) not null,           -- GC is good, BC bad
    credit_limit numeric(12,2) not null,
    discount    numeric(4,4) not null,
    balance     numeric(12,2) not null,
    ytd_payment numeric(12,2) not null,
    payments    int not null,
    deliveries  int not null,
    data        varchar(500) not null
);

create table history (
    customer_warehouse int not null,
    customer_district  int not null,
    customer    int not null,
    warehouse   int not null,
    district    int not null,
    paid        timestamptz not null,
    amount      numeric(6,2) not null,
    data        varchar(24) not null
);

create table orders (
    warehouse   int not null,
    district    int not null,
    id          int not null,
    customer    int not null,
    entered     timestamptz not null,
    carrier     int,                        -- of a delivered order
    lines       int not null,
    all_local   bool not null
);

create table new_order (
    warehouse   int not null,
    district    int not null,
    id          int not null
);

create table order_line (
    warehouse   int not null,
    district    int not null,
    order_id    int not null,
    line        int not null,
    item        int not null,
    supplier    int not null,               -- the warehouse that it comes from
    delivered   timestamptz,
    quantity    int not null,
    amount      numeric(6,2) not null,
    dist_info   char(24) not null
);

create table item (
    id          int not null,
    image       int not null,
    name        varchar(24) not null,
    price       numeric(5,2) not null,
    data        varchar(50) not null
);

create table stock (
    warehouse   int not null,
    item        int not null,
    quantity    int not null,
    dist_info   char(24)[] not null,        -- for each district
    ytd         int not null,
    orders      int not null,
    remote_orders int not null,
    data        varchar(50) not null
);

-- The name of a customer is made of three syllables, by the digits of a number.
create function last_name(number int) returns text language sql immutable as $$
    select (array['BRO', 'UGHT', 'ABEL', 'PRIO', 'PRESS', 'ESTE', 'ANTE', 'CALL', 'ATIO', 'EIGN'])[number / 100 + 1]
        || (array['BRO', 'UGHT', 'ABEL', 'PRIO', 'PRESS', 'ESTE', 'ANTE', 'CALL', 'ATIO', 'EIGN'])[number / 10 % 10 + 1]
        || (array['BRO', 'UGHT', 'ABEL', 'PRIO', 'PRESS', 'ESTE', 'ANTE', 'CALL', 'ATIO', 'EIGN'])[number % 10 + 1]
$$;
