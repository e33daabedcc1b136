// A client and a server with google.golang.org/grpc, whose messages are plain bytes.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const most = 1000

type raw struct{}

func (raw) Name() string { return "proto" }
func (raw) Marshal(v any) ([]byte, error) {
	if bytes, ok := v.(*[]byte); ok {
		return *bytes, nil
	}
	return proto.Marshal(v.(proto.Message))
}
func (raw) Unmarshal(data []byte, v any) error {
	if bytes, ok := v.(*[]byte); ok {
		*bytes = append([]byte{}, data...)
		return nil
	}
	return proto.Unmarshal(data, v.(proto.Message))
}

// The number of connections, and of calls cancelled by their clients.
var connections, cancelled atomic.Int64

type counting struct{}

func (counting) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (counting) HandleRPC(context.Context, stats.RPCStats)                       {}
func (counting) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	connections.Add(1)
	return ctx
}
func (counting) HandleConn(context.Context, stats.ConnStats) {}

func send(stream grpc.Stream, text string) error {
	bytes := []byte(text)
	return stream.SendMsg(&bytes)
}

func receive(stream grpc.Stream) (string, error) {
	var bytes []byte
	err := stream.RecvMsg(&bytes)
	return string(bytes), err
}

// Echoes each message, except for a few commands.
func serve(_ any, stream grpc.ServerStream) error {
	fields, _ := metadata.FromIncomingContext(stream.Context())
	stream.SetTrailer(metadata.Pairs("x-subject", fmt.Sprint(fields["x-auth-subject"])))
	count := 0
	for {
		text, err := receive(stream)
		if err == io.EOF {
			return send(stream, fmt.Sprint("messages ", count))
		}
		if err != nil {
			cancelled.Add(1)
			return err
		}
		count++
		switch text {
		case "take": // Answered after the last message.
		case "hang":
			<-stream.Context().Done()
			cancelled.Add(1)
			return stream.Context().Err()
		case "fail":
			return status.Error(codes.Aborted, "the server ends it: ü")
		case "state":
			return send(stream, fmt.Sprintf("connections %d, cancelled %d", connections.Load(), cancelled.Load()))
		case "many":
			for i := 0; i < 5000; i++ {
				if err := send(stream, fmt.Sprint("message ", i)); err != nil {
					return err
				}
			}
			return nil
		default:
			if err := send(stream, text); err != nil {
				return err
			}
		}
	}
}

func startServer() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	server := grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.StatsHandler(counting{}), grpc.MaxConcurrentStreams(2*most))
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "test.Go",
		HandlerType: (*any)(nil),
		Streams:     []grpc.StreamDesc{{StreamName: "Call", Handler: serve, ServerStreams: true, ClientStreams: true}},
	}, struct{}{})
	states := health.NewServer()
	states.SetServingStatus("test.Go", healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(server, states)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	check(server.Serve(listener))
}

func check(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

type client struct {
	*grpc.ClientConn
	context.Context
}

var both = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

func (c client) open(ctx context.Context) grpc.ClientStream {
	stream, err := c.NewStream(ctx, both, "/test.Go/Call")
	check(err)
	return stream
}

func (c client) unary(ctx context.Context, text string) (string, error) {
	in, out := []byte(text), []byte{}
	err := c.Invoke(ctx, "/test.Go/Call", &in, &out)
	return string(out), err
}

func connect(port, caFile string) *grpc.ClientConn {
	pem, err := os.ReadFile(caFile)
	check(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	secure := credentials.NewTLS(&tls.Config{RootCAs: pool, ServerName: "localhost"})
	connection, err := grpc.NewClient("passthrough:///127.0.0.1:"+port, grpc.WithTransportCredentials(secure),
		grpc.WithAuthority("localhost"), grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{})), grpc.WithNoProxy())
	check(err)
	return connection
}

func main() {
	if os.Args[1] == "server" {
		startServer()
		return
	}
	connection := connect(os.Args[2], os.Args[3])
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	_, err := client{connection, ctx}.unary(ctx, "state")
	fmt.Println("without a token:", status.Code(err))
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+os.Args[4])
	c := client{connection, ctx}
	c.kinds()
	c.ends()
	c.crowd()
	answer, err := healthpb.NewHealthClient(connection).Check(ctx, &healthpb.HealthCheckRequest{Service: "test.Go"})
	check(err)
	fmt.Println("health:", answer.GetStatus())
	state, err := c.unary(ctx, "state")
	check(err)
	fmt.Println("state:", state)
}

// Client, server and bidirectional streams.
func (c client) kinds() {
	stream := c.open(c.Context)
	for i := 0; i < 100; i++ {
		check(send(stream, "take"))
	}
	check(stream.CloseSend())
	text, err := receive(stream)
	check(err)
	fmt.Println("client:", text)
	_, err = receive(stream)
	fmt.Println("end:", err, stream.Trailer()["x-subject"])

	stream = c.open(c.Context)
	check(send(stream, "many"))
	count := 0
	for err = nil; err == nil; {
		if _, err = receive(stream); err == nil {
			count++
		}
	}
	fmt.Println("server:", count, err)

	stream = c.open(c.Context)
	for i := 0; i < 100; i++ {
		check(send(stream, fmt.Sprint(i)))
		text, err := receive(stream)
		check(err)
		if text != fmt.Sprint(i) {
			check(fmt.Errorf("%s in place of %d", text, i))
		}
	}
	check(stream.CloseSend())
	text, err = receive(stream)
	check(err)
	fmt.Println("both:", text)
}

// Cancellation by the client, an error of the server, and a deadline.
func (c client) ends() {
	ctx, cancel := context.WithCancel(c.Context)
	stream := c.open(ctx)
	check(send(stream, "one"))
	_, err := receive(stream)
	check(err)
	cancel()
	_, err = receive(stream)
	fmt.Println("cancelled by the client:", status.Code(err))

	stream = c.open(c.Context)
	check(send(stream, "fail"))
	_, err = receive(stream)
	fmt.Println("ended by the server:", status.Code(err), status.Convert(err).Message())

	ctx, stop := context.WithTimeout(c.Context, 300*time.Millisecond)
	defer stop()
	_, err = c.unary(ctx, "hang")
	fmt.Println("deadline:", status.Code(err))
}

// A thousand concurrent streams.
func (c client) crowd() {
	var open, done sync.WaitGroup
	var right atomic.Int64
	open.Add(most)
	done.Add(most)
	for i := 0; i < most; i++ {
		go func(i int) {
			defer done.Done()
			stream := c.open(c.Context)
			check(send(stream, fmt.Sprint(i)))
			first, err := receive(stream)
			check(err)
			open.Done()
			open.Wait()
			check(stream.CloseSend())
			last, err := receive(stream)
			check(err)
			if first == fmt.Sprint(i) && last == "messages 1" {
				right.Add(1)
			}
		}(i)
	}
	done.Wait()
	fmt.Println("at once:", right.Load())
}
