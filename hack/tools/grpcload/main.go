// grpcload sends unary gRPC calls by the clock, at a given rate, and says how long they took.
//
// The loop is open: a call is sent at its time, whether or not earlier ones have come back, so that a server that stops for
// a moment is charged for all calls that it keeps waiting. Several servers take turns, a slice of time each, so that they
// are measured in the same seconds of a machine that does other things too. Requests are sent as they are; answers are not
// looked at. A call that is refused, or not answered in time, counts as one of five seconds.
//
//	grpcload -method /package.Service/Method -requests FILE -rate 1000 -seconds 15 [-tls FOLDER] name=host:port ...
//
// FILE holds requests one after the other, each behind its length (4 bytes, big-endian). FOLDER holds ca.crt, client.crt
// and client.key, for servers whose address begins with tls://. Prints one JSON object.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
)

// raw passes bytes through. Its name is the one that servers expect in the content type.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

type target struct {
	name       string
	connection *grpc.ClientConn
	mutex      sync.Mutex
	calls      []call
	failed     int
	why        string
}

// patience is how long an answer is waited for, and what a call counts as that got none.
const patience = 5 * time.Second

// call is one that is over: when it was due and sent, and when its answer came.
type call struct{ due, sent, done time.Time }

type options struct {
	method, tls   string
	rate, seconds int
	slice, warmup time.Duration
	slow          time.Duration
	requests      [][]byte
}

// figures are in milliseconds. Answer is from the moment a call was sent, Due from the one at which it should have been.
type figures struct {
	Calls   int                `json:"calls"`
	Failed  int                `json:"failed"`
	Error   string             `json:"error,omitempty"`
	Answer  map[string]float64 `json:"answer_ms"`
	Due     map[string]float64 `json:"due_ms"`
	Late    map[string]float64 `json:"late_ms"`
	Buckets map[string]int     `json:"buckets"`
	Slow    [][2]float64       `json:"slow"`
}

func main() {
	var asked options
	flag.StringVar(&asked.method, "method", "", "full name of the method")
	flag.IntVar(&asked.rate, "rate", 1000, "calls a second")
	flag.IntVar(&asked.seconds, "seconds", 15, "for each server")
	flag.DurationVar(&asked.slice, "slice", time.Second, "how long a turn is")
	flag.DurationVar(&asked.warmup, "warmup", time.Second, "for each server, before anything is counted")
	flag.DurationVar(&asked.slow, "slow", 2*time.Millisecond, "calls of more are listed, with their Unix time")
	file := flag.String("requests", "", "file of requests")
	flag.StringVar(&asked.tls, "tls", "", "folder of certificates")
	flag.Parse()
	if err := run(asked, *file, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "grpcload:", err)
		os.Exit(1)
	}
}

func run(asked options, file string, servers []string) error {
	requests, err := read(file)
	if err != nil {
		return err
	}
	asked.requests = requests
	var targets []*target
	for _, server := range servers {
		name, address, _ := strings.Cut(server, "=")
		transport := insecure.NewCredentials()
		address, secure := strings.CutPrefix(address, "tls://")
		if secure {
			if transport, err = certificates(asked.tls); err != nil {
				return err
			}
		}
		connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(transport))
		if err != nil {
			return err
		}
		defer connection.Close()
		targets = append(targets, &target{name: name, connection: connection})
	}
	for _, each := range targets {
		each.turn(asked, asked.warmup, 0)
		each.calls, each.failed, each.why = nil, 0, ""
	}
	for turn := range int(time.Duration(asked.seconds) * time.Second / asked.slice) {
		for _, each := range targets {
			each.turn(asked, asked.slice, turn)
		}
	}
	found := map[string]figures{}
	for _, each := range targets {
		found[each.name] = each.figures(asked)
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

func certificates(folder string) (credentials.TransportCredentials, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "client.crt"), filepath.Join(folder, "client.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool}), nil
}

func read(file string) ([][]byte, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var found [][]byte
	for len(content) >= 4 {
		size := int(binary.BigEndian.Uint32(content))
		if len(content) < 4+size {
			break
		}
		found = append(found, content[4:4+size])
		content = content[4+size:]
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s holds no request", file)
	}
	return found, nil
}

// turn sends calls for that long, and waits for the last of them.
func (t *target) turn(asked options, length time.Duration, number int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pause := time.Second / time.Duration(asked.rate)
	count := int(length / pause)
	began := time.Now()
	var group sync.WaitGroup
	for index := range count {
		due := began.Add(time.Duration(index) * pause)
		sleep(time.Until(due))
		request := asked.requests[(number*count+index)%len(asked.requests)]
		group.Go(func() { t.one(asked.method, request, due) })
	}
	group.Wait()
}

// sleep is exact: timers of Go's runtime end at whole milliseconds, and calls would go in pairs.
func sleep(length time.Duration) {
	if length > 0 {
		left := syscall.NsecToTimespec(int64(length))
		_ = syscall.Nanosleep(&left, nil)
	}
}

func (t *target) one(method string, request []byte, due time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var answer []byte
	sent := time.Now()
	err := t.connection.Invoke(ctx, method, &request, &answer, grpc.ForceCodecV2(raw{}))
	done := time.Now()
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if err != nil {
		t.failed, t.why = t.failed+1, err.Error()
		done = sent.Add(patience) // one that was refused at once is no fast one
	}
	t.calls = append(t.calls, call{due, sent, done})
}

func (t *target) figures(asked options) figures {
	var answer, due, late []float64
	found := figures{Calls: len(t.calls), Failed: t.failed, Error: t.why, Buckets: map[string]int{}}
	for _, each := range t.calls {
		took := each.done.Sub(each.sent)
		answer = append(answer, ms(took))
		due = append(due, ms(each.done.Sub(each.due)))
		late = append(late, ms(each.sent.Sub(each.due)))
		found.Buckets[bucket(took)]++
		if took > asked.slow {
			found.Slow = append(found.Slow, [2]float64{float64(each.sent.UnixMicro()) / 1e6, ms(took)})
		}
	}
	found.Answer, found.Due, found.Late = percentiles(answer), percentiles(due), percentiles(late)
	return found
}

func bucket(took time.Duration) string {
	for _, edge := range []float64{0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 50} {
		if ms(took) <= edge {
			return fmt.Sprintf("%05.2f", edge)
		}
	}
	return "more"
}

func percentiles(sample []float64) map[string]float64 {
	slices.Sort(sample)
	found := map[string]float64{}
	for name, part := range map[string]float64{"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1} {
		if len(sample) > 0 {
			index := int(math.Ceil(part*float64(len(sample)))) - 1
			found[name] = math.Round(sample[max(index, 0)]*1000) / 1000
		}
	}
	return found
}

func ms(duration time.Duration) float64 { return float64(duration) / float64(time.Millisecond) }
