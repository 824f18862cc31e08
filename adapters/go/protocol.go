package main

// The adapter protocol: lines in, lines out. Nothing in here is about any SDK; docs/adapter-protocol.md is the guide.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
)

// Unsupported says that the SDK does not offer something: an operation, or an option of one.
type Unsupported string

func (u Unsupported) Error() string { return string(u) }

// Failed is a failure as the application sees it. How is "byFuture", or "synchronously" when the call itself failed.
type Failed struct {
	Category string `json:"category"`
	Message  string `json:"message"`
	How      string `json:"how"`
}

func (f Failed) Error() string { return f.Category + ": " + f.Message }

// Method does what a request asks for.
type Method func(params json.RawMessage) (any, error)

// typed reads the parameters. A field that the type does not have is an option that nobody would honour, so the
// request is unsupported.
func typed[P any](do func(P) (any, error)) Method {
	return func(params json.RawMessage) (any, error) {
		var parsed P
		decoder := json.NewDecoder(bytes.NewReader(params))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&parsed); err != nil {
			return nil, Unsupported(err.Error())
		}
		return do(parsed)
	}
}

type request struct {
	ID     uint64          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// serve answers requests until the suite closes the stream. Each has a goroutine of its own, because a receive may wait
// while others come and go.
func serve(methods map[string]Method) error {
	input, output, err := streams()
	if err != nil {
		return err
	}
	var writing sync.Mutex
	lines := bufio.NewReader(input)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var asked request
		if err := json.Unmarshal(line, &asked); err != nil {
			return fmt.Errorf("no request: %w", err)
		}
		go func() {
			answer := map[string]any{"jsonrpc": "2.0", "id": asked.ID}
			if result, err := run(methods, asked); err != nil {
				answer["error"] = rejected(err)
			} else {
				answer["result"] = result
			}
			encoded, err := json.Marshal(answer)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			writing.Lock()
			defer writing.Unlock()
			fmt.Fprintf(output, "%s\n", encoded)
		}()
	}
}

// streams are standard input and output, or a socket to a suite that waits with --attach.
func streams() (io.Reader, io.Writer, error) {
	if address := os.Getenv("STC_CONNECT"); address != "" {
		connection, err := net.Dial("tcp", address)
		return connection, connection, err
	}
	return os.Stdin, os.Stdout, nil
}

func run(methods map[string]Method, asked request) (any, error) {
	method, known := methods[asked.Method]
	if !known {
		return nil, Unsupported("the operation " + asked.Method)
	}
	return method(asked.Params)
}

func rejected(err error) rpcError {
	var unsupported Unsupported
	var failed Failed
	switch {
	case errors.As(err, &unsupported):
		return rpcError{-32001, err.Error(), map[string]string{"capability": string(unsupported)}}
	case errors.As(err, &failed):
		return rpcError{-32000, err.Error(), failed}
	default: // the adapter's own fault
		return rpcError{-32603, err.Error(), nil}
	}
}
