// Command adapter is a skeleton: fill in what your SDK does, one operation after the other. Whatever is missing here is
// unsupported.
//
//	stc run --client go --scenario C1-producer-watches
//
// Parameters have the names of the protocol (docs/adapter-protocol.md), results are its results.
package main

import (
	"fmt"
	"os"
	"sync/atomic"
)

var numbers atomic.Uint64

type none struct{}

type openClient struct {
	Options struct{ ServiceURL string }
}

type createProducer struct {
	Client  uint64
	Options struct{ Topic, Name, Access, Schema string }
}

type send struct {
	Producer uint64
	Message  struct {
		Value struct{ Text string }
		Key   *string
	}
}

type closeProducer struct{ Producer uint64 }

type closeClient struct{ Client uint64 }

func main() {
	methods := map[string]Method{
		"initialize": typed(func(struct {
			ProtocolVersion int
			Suite           struct{ Name, Version string }
		}) (any, error) {
			return map[string]any{
				"protocolVersion": 1,
				"sdk":             map[string]string{"name": "my-sdk", "version": "0.0.0"},
				// What is not in this list is not asked for. The guide has all names.
				"capabilities": []string{"sync"},
			}, nil
		}),
		"startScenario": typed(func(struct {
			Scenario string
			Seed     uint64
		}) (any, error) {
			return nil, nil
		}),
		// Closes whatever is still open.
		"endScenario": typed(func(none) (any, error) { return nil, nil }),
		"openClient": typed(func(asked openClient) (any, error) {
			// client, err := mysdk.NewClient(asked.Options.ServiceURL)
			return numbers.Add(1), nil
		}),
		"createProducer": typed(func(asked createProducer) (any, error) {
			if asked.Options.Access != "shared" || asked.Options.Schema != "text" {
				return nil, Unsupported("access modes and schemas other than the default")
			}
			// An error of the SDK is Failed{"NotFound", err.Error(), "byFuture"}.
			return nil, Unsupported("producers")
		}),
		"send": typed(func(asked send) (any, error) {
			// The result is the identifier's bytes in base64: a []byte is written so.
			return nil, Unsupported("send")
		}),
		"closeProducer": typed(func(asked closeProducer) (any, error) {
			// err := producers[asked.Producer].Close()
			return nil, Unsupported("closing a producer")
		}),
		"closeClient": typed(func(asked closeClient) (any, error) {
			// err := clients[asked.Client].Close()
			return nil, nil
		}),
	}
	if err := serve(methods); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
