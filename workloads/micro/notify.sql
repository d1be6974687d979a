\if :step = 0
listen micro;
\set step 1
\endif
notify micro, 'hello';
