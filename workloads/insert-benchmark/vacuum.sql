vacuum analyze sale;
