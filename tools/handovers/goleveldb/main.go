// One side of a hand-over, on goleveldb: "read DIR" prints the digest of all entries; "write DIR SEED close|kill" changes the
// database, prints the digest of what it then holds, and ends that way. tools/handovers/run compares.
package main

import (
	"fmt"
	"hash/fnv"
	"os"
	"sort"
	"strconv"
	"syscall"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func entries(db *leveldb.DB) map[string][]byte {
	all := map[string][]byte{}
	iter := db.NewIterator(nil, nil)
	for iter.Next() {
		all[string(iter.Key())] = append([]byte{}, iter.Value()...)
	}
	must(iter.Error())
	iter.Release()
	return all
}

func digest(all map[string][]byte) string {
	keys := make([]string, 0, len(all))
	for key := range all {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	hash := fnv.New64a()
	for _, key := range keys {
		hash.Write([]byte(key))
		hash.Write(all[key])
	}
	return fmt.Sprintf("%d %016x", len(all), hash.Sum64())
}

func main() {
	if len(os.Args) < 3 {
		must(fmt.Errorf("read DIR | write DIR SEED close|kill"))
	}
	db, err := leveldb.OpenFile(os.Args[2], &opt.Options{WriteBuffer: 1 << 20})
	must(err)
	all := entries(db)
	if os.Args[1] == "write" {
		seed, err := strconv.ParseUint(os.Args[3], 10, 64)
		must(err)
		state := seed*7919 + 13
		random := func() uint64 {
			state ^= state << 13
			state ^= state >> 7
			state ^= state << 17
			return state
		}
		largest := []uint64{60, 300, 3000, 20000, 90000}[seed%5]
		operations := 200 + random()%400
		for number := uint64(0); number < operations; number++ {
			key := fmt.Sprintf("%06d", random()%500)
			if random()%6 == 0 {
				must(db.Delete([]byte(key), nil))
				delete(all, key)
			}
			value := make([]byte, random()%largest+1)
			fill := byte(random())
			for i := range value {
				value[i] = fill
			}
			sync := number+1 == operations || random()%50 == 0
			must(db.Put([]byte(key), value, &opt.WriteOptions{Sync: sync}))
			all[key] = value
		}
	}
	fmt.Println(digest(all))
	if os.Args[1] == "write" && os.Args[4] == "kill" {
		must(syscall.Kill(os.Getpid(), syscall.SIGKILL))
		select {}
	}
	must(db.Close())
}
