-- The driver draws the rows and sends them as a list of values, prices as decimals, as the reference implementation does. The list
-- of 50 has all the parameters that a prepared statement may have: the length of notes is outside of it.
\if :batch = 50
\set r1 random(0, :registers - 1)
\set c1 random(0, :customers - 1)
\set p1 random(0, :products - 1)
\set s1 random(0, :prices - 1)
\set n1 random(10000, 99999)
\set r2 random(0, :registers - 1)
\set c2 random(0, :customers - 1)
\set p2 random(0, :products - 1)
\set s2 random(0, :prices - 1)
\set n2 random(10000, 99999)
\set r3 random(0, :registers - 1)
\set c3 random(0, :customers - 1)
\set p3 random(0, :products - 1)
\set s3 random(0, :prices - 1)
\set n3 random(10000, 99999)
\set r4 random(0, :registers - 1)
\set c4 random(0, :customers - 1)
\set p4 random(0, :products - 1)
\set s4 random(0, :prices - 1)
\set n4 random(10000, 99999)
\set r5 random(0, :registers - 1)
\set c5 random(0, :customers - 1)
\set p5 random(0, :products - 1)
\set s5 random(0, :prices - 1)
\set n5 random(10000, 99999)
\set r6 random(0, :registers - 1)
\set c6 random(0, :customers - 1)
\set p6 random(0, :products - 1)
\set s6 random(0, :prices - 1)
\set n6 random(10000, 99999)
\set r7 random(0, :registers - 1)
\set c7 random(0, :customers - 1)
\set p7 random(0, :products - 1)
\set s7 random(0, :prices - 1)
\set n7 random(10000, 99999)
\set r8 random(0, :registers - 1)
\set c8 random(0, :customers - 1)
\set p8 random(0, :products - 1)
\set s8 random(0, :prices - 1)
\set n8 random(10000, 99999)
\set r9 random(0, :registers - 1)
\set c9 random(0, :customers - 1)
\set p9 random(0, :products - 1)
\set s9 random(0, :prices - 1)
\set n9 random(10000, 99999)
\set r10 random(0, :registers - 1)
\set c10 random(0, :customers - 1)
\set p10 random(0, :products - 1)
\set s10 random(0, :prices - 1)
\set n10 random(10000, 99999)
\set r11 random(0, :registers - 1)
\set c11 random(0, :customers - 1)
\set p11 random(0, :products - 1)
\set s11 random(0, :prices - 1)
\set n11 random(10000, 99999)
\set r12 random(0, :registers - 1)
\set c12 random(0, :customers - 1)
\set p12 random(0, :products - 1)
\set s12 random(0, :prices - 1)
\set n12 random(10000, 99999)
\set r13 random(0, :registers - 1)
\set c13 random(0, :customers - 1)
\set p13 random(0, :products - 1)
\set s13 random(0, :prices - 1)
\set n13 random(10000, 99999)
\set r14 random(0, :registers - 1)
\set c14 random(0, :customers - 1)
\set p14 random(0, :products - 1)
\set s14 random(0, :prices - 1)
\set n14 random(10000, 99999)
\set r15 random(0, :registers - 1)
\set c15 random(0, :customers - 1)
\set p15 random(0, :products - 1)
\set s15 random(0, :prices - 1)
\set n15 random(10000, 99999)
\set r16 random(0, :registers - 1)
\set c16 random(0, :customers - 1)
\set p16 random(0, :products - 1)
\set s16 random(0, :prices - 1)
\set n16 random(10000, 99999)
\set r17 random(0, :registers - 1)
\set c17 random(0, :customers - 1)
\set p17 random(0, :products - 1)
\set s17 random(0, :prices - 1)
\set n17 random(10000, 99999)
\set r18 random(0, :registers - 1)
\set c18 random(0, :customers - 1)
\set p18 random(0, :products - 1)
\set s18 random(0, :prices - 1)
\set n18 random(10000, 99999)
\set r19 random(0, :registers - 1)
\set c19 random(0, :customers - 1)
\set p19 random(0, :products - 1)
\set s19 random(0, :prices - 1)
\set n19 random(10000, 99999)
\set r20 random(0, :registers - 1)
\set c20 random(0, :customers - 1)
\set p20 random(0, :products - 1)
\set s20 random(0, :prices - 1)
\set n20 random(10000, 99999)
\set r21 random(0, :registers - 1)
\set c21 random(0, :customers - 1)
\set p21 random(0, :products - 1)
\set s21 random(0, :prices - 1)
\set n21 random(10000, 99999)
\set r22 random(0, :registers - 1)
\set c22 random(0, :customers - 1)
\set p22 random(0, :products - 1)
\set s22 random(0, :prices - 1)
\set n22 random(10000, 99999)
\set r23 random(0, :registers - 1)
\set c23 random(0, :customers - 1)
\set p23 random(0, :products - 1)
\set s23 random(0, :prices - 1)
\set n23 random(10000, 99999)
\set r24 random(0, :registers - 1)
\set c24 random(0, :customers - 1)
\set p24 random(0, :products - 1)
\set s24 random(0, :prices - 1)
\set n24 random(10000, 99999)
\set r25 random(0, :registers - 1)
\set c25 random(0, :customers - 1)
\set p25 random(0, :products - 1)
\set s25 random(0, :prices - 1)
\set n25 random(10000, 99999)
\set r26 random(0, :registers - 1)
\set c26 random(0, :customers - 1)
\set p26 random(0, :products - 1)
\set s26 random(0, :prices - 1)
\set n26 random(10000, 99999)
\set r27 random(0, :registers - 1)
\set c27 random(0, :customers - 1)
\set p27 random(0, :products - 1)
\set s27 random(0, :prices - 1)
\set n27 random(10000, 99999)
\set r28 random(0, :registers - 1)
\set c28 random(0, :customers - 1)
\set p28 random(0, :products - 1)
\set s28 random(0, :prices - 1)
\set n28 random(10000, 99999)
\set r29 random(0, :registers - 1)
\set c29 random(0, :customers - 1)
\set p29 random(0, :products - 1)
\set s29 random(0, :prices - 1)
\set n29 random(10000, 99999)
\set r30 random(0, :registers - 1)
\set c30 random(0, :customers - 1)
\set p30 random(0, :products - 1)
\set s30 random(0, :prices - 1)
\set n30 random(10000, 99999)
\set r31 random(0, :registers - 1)
\set c31 random(0, :customers - 1)
\set p31 random(0, :products - 1)
\set s31 random(0, :prices - 1)
\set n31 random(10000, 99999)
\set r32 random(0, :registers - 1)
\set c32 random(0, :customers - 1)
\set p32 random(0, :products - 1)
\set s32 random(0, :prices - 1)
\set n32 random(10000, 99999)
\set r33 random(0, :registers - 1)
\set c33 random(0, :customers - 1)
\set p33 random(0, :products - 1)
\set s33 random(0, :prices - 1)
\set n33 random(10000, 99999)
\set r34 random(0, :registers - 1)
\set c34 random(0, :customers - 1)
\set p34 random(0, :products - 1)
\set s34 random(0, :prices - 1)
\set n34 random(10000, 99999)
\set r35 random(0, :registers - 1)
\set c35 random(0, :customers - 1)
\set p35 random(0, :products - 1)
\set s35 random(0, :prices - 1)
\set n35 random(10000, 99999)
\set r36 random(0, :registers - 1)
\set c36 random(0, :customers - 1)
\set p36 random(0, :products - 1)
\set s36 random(0, :prices - 1)
\set n36 random(10000, 99999)
\set r37 random(0, :registers - 1)
\set c37 random(0, :customers - 1)
\set p37 random(0, :products - 1)
\set s37 random(0, :prices - 1)
\set n37 random(10000, 99999)
\set r38 random(0, :registers - 1)
\set c38 random(0, :customers - 1)
\set p38 random(0, :products - 1)
\set s38 random(0, :prices - 1)
\set n38 random(10000, 99999)
\set r39 random(0, :registers - 1)
\set c39 random(0, :customers - 1)
\set p39 random(0, :products - 1)
\set s39 random(0, :prices - 1)
\set n39 random(10000, 99999)
\set r40 random(0, :registers - 1)
\set c40 random(0, :customers - 1)
\set p40 random(0, :products - 1)
\set s40 random(0, :prices - 1)
\set n40 random(10000, 99999)
\set r41 random(0, :registers - 1)
\set c41 random(0, :customers - 1)
\set p41 random(0, :products - 1)
\set s41 random(0, :prices - 1)
\set n41 random(10000, 99999)
\set r42 random(0, :registers - 1)
\set c42 random(0, :customers - 1)
\set p42 random(0, :products - 1)
\set s42 random(0, :prices - 1)
\set n42 random(10000, 99999)
\set r43 random(0, :registers - 1)
\set c43 random(0, :customers - 1)
\set p43 random(0, :products - 1)
\set s43 random(0, :prices - 1)
\set n43 random(10000, 99999)
\set r44 random(0, :registers - 1)
\set c44 random(0, :customers - 1)
\set p44 random(0, :products - 1)
\set s44 random(0, :prices - 1)
\set n44 random(10000, 99999)
\set r45 random(0, :registers - 1)
\set c45 random(0, :customers - 1)
\set p45 random(0, :products - 1)
\set s45 random(0, :prices - 1)
\set n45 random(10000, 99999)
\set r46 random(0, :registers - 1)
\set c46 random(0, :customers - 1)
\set p46 random(0, :products - 1)
\set s46 random(0, :prices - 1)
\set n46 random(10000, 99999)
\set r47 random(0, :registers - 1)
\set c47 random(0, :customers - 1)
\set p47 random(0, :products - 1)
\set s47 random(0, :prices - 1)
\set n47 random(10000, 99999)
\set r48 random(0, :registers - 1)
\set c48 random(0, :customers - 1)
\set p48 random(0, :products - 1)
\set s48 random(0, :prices - 1)
\set n48 random(10000, 99999)
\set r49 random(0, :registers - 1)
\set c49 random(0, :customers - 1)
\set p49 random(0, :products - 1)
\set s49 random(0, :prices - 1)
\set n49 random(10000, 99999)
\set r50 random(0, :registers - 1)
\set c50 random(0, :customers - 1)
\set p50 random(0, :products - 1)
\set s50 random(0, :prices - 1)
\set n50 random(10000, 99999)
insert into sale (register, customer, product, price, note)
select register, customer, product, price,
       lpad(random::text, :note_length::int, 'a')
from (values
    (:r1::int, :c1::int, :p1::int, :s1::numeric, :n1::int),
    (:r2, :c2, :p2, :s2, :n2),
    (:r3, :c3, :p3, :s3, :n3),
    (:r4, :c4, :p4, :s4, :n4),
    (:r5, :c5, :p5, :s5, :n5),
    (:r6, :c6, :p6, :s6, :n6),
    (:r7, :c7, :p7, :s7, :n7),
    (:r8, :c8, :p8, :s8, :n8),
    (:r9, :c9, :p9, :s9, :n9),
    (:r10, :c10, :p10, :s10, :n10),
    (:r11, :c11, :p11, :s11, :n11),
    (:r12, :c12, :p12, :s12, :n12),
    (:r13, :c13, :p13, :s13, :n13),
    (:r14, :c14, :p14, :s14, :n14),
    (:r15, :c15, :p15, :s15, :n15),
    (:r16, :c16, :p16, :s16, :n16),
    (:r17, :c17, :p17, :s17, :n17),
    (:r18, :c18, :p18, :s18, :n18),
    (:r19, :c19, :p19, :s19, :n19),
    (:r20, :c20, :p20, :s20, :n20),
    (:r21, :c21, :p21, :s21, :n21),
    (:r22, :c22, :p22, :s22, :n22),
    (:r23, :c23, :p23, :s23, :n23),
    (:r24, :c24, :p24, :s24, :n24),
    (:r25, :c25, :p25, :s25, :n25),
    (:r26, :c26, :p26, :s26, :n26),
    (:r27, :c27, :p27, :s27, :n27),
    (:r28, :c28, :p28, :s28, :n28),
    (:r29, :c29, :p29, :s29, :n29),
    (:r30, :c30, :p30, :s30, :n30),
    (:r31, :c31, :p31, :s31, :n31),
    (:r32, :c32, :p32, :s32, :n32),
    (:r33, :c33, :p33, :s33, :n33),
    (:r34, :c34, :p34, :s34, :n34),
    (:r35, :c35, :p35, :s35, :n35),
    (:r36, :c36, :p36, :s36, :n36),
    (:r37, :c37, :p37, :s37, :n37),
    (:r38, :c38, :p38, :s38, :n38),
    (:r39, :c39, :p39, :s39, :n39),
    (:r40, :c40, :p40, :s40, :n40),
    (:r41, :c41, :p41, :s41, :n41),
    (:r42, :c42, :p42, :s42, :n42),
    (:r43, :c43, :p43, :s43, :n43),
    (:r44, :c44, :p44, :s44, :n44),
    (:r45, :c45, :p45, :s45, :n45),
    (:r46, :c46, :p46, :s46, :n46),
    (:r47, :c47, :p47, :s47, :n47),
    (:r48, :c48, :p48, :s48, :n48),
    (:r49, :c49, :p49, :s49, :n49),
    (:r50, :c50, :p50, :s50, :n50)
) as drawn (register, customer, product, price, random);
\elif :batch = 5
\set r1 random(0, :registers - 1)
\set c1 random(0, :customers - 1)
\set p1 random(0, :products - 1)
\set s1 random(0, :prices - 1)
\set n1 random(10000, 99999)
\set r2 random(0, :registers - 1)
\set c2 random(0, :customers - 1)
\set p2 random(0, :products - 1)
\set s2 random(0, :prices - 1)
\set n2 random(10000, 99999)
\set r3 random(0, :registers - 1)
\set c3 random(0, :customers - 1)
\set p3 random(0, :products - 1)
\set s3 random(0, :prices - 1)
\set n3 random(10000, 99999)
\set r4 random(0, :registers - 1)
\set c4 random(0, :customers - 1)
\set p4 random(0, :products - 1)
\set s4 random(0, :prices - 1)
\set n4 random(10000, 99999)
\set r5 random(0, :registers - 1)
\set c5 random(0, :customers - 1)
\set p5 random(0, :products - 1)
\set s5 random(0, :prices - 1)
\set n5 random(10000, 99999)
insert into sale (register, customer, product, price, note) values
    (:r1, :c1, :p1, :s1::numeric, lpad(:n1::text, :note_length::int, 'a')),
    (:r2, :c2, :p2, :s2::numeric, lpad(:n2::text, :note_length::int, 'a')),
    (:r3, :c3, :p3, :s3::numeric, lpad(:n3::text, :note_length::int, 'a')),
    (:r4, :c4, :p4, :s4::numeric, lpad(:n4::text, :note_length::int, 'a')),
    (:r5, :c5, :p5, :s5::numeric, lpad(:n5::text, :note_length::int, 'a'));
\else
-- A list has a fixed number of rows: the server makes them from a number.
\set seed random(1, 1000000000000)
insert into sale (register, customer, product, price, note)
select abs(hashint8(:seed::bigint + n)::bigint) % :registers::int,
       abs(hashint8(:seed::bigint - n)::bigint) % :customers::int,
       abs(hashint8(:seed::bigint + 1000003 * n)::bigint) % :products::int,
       abs(hashint8(:seed::bigint - 1000003 * n)::bigint) % :prices::int,
       lpad(left(md5((:seed::bigint + n)::text), (:note_length::int + 1) / 2), :note_length::int, 'a')
from generate_series(1, :batch::int) n;
\endif
