// The Go client whose own tests run on the drop-in.
module clients

go 1.17

require github.com/jmhodges/levigo v1.0.0
