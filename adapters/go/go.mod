module stc/adapter

go 1.19
