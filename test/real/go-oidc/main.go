// An identity provider with zitadel's library, its example users and its login form. Its keys are the files of a
// directory, read on each use, so that a test can rotate them. The last file name signs.
//
// Usage: program ADDRESS KEYS CALLBACK
package main

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// The audience of access tokens, in addition to the client that introspects them.
const audience = "orders"

type key struct {
	id   string
	pair *rsa.PrivateKey
}

func (k key) ID() string                                  { return k.id }
func (k key) Algorithm() jose.SignatureAlgorithm          { return jose.RS256 }
func (k key) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k key) Use() string                                 { return "sig" }

type signing struct{ key }

func (k signing) Key() any { return k.pair }

type public struct{ key }

func (k public) Key() any { return &k.pair.PublicKey }

// jwtClient gets JWTs instead of opaque access tokens.
type jwtClient struct{ op.Client }

func (jwtClient) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }

type robot struct {
	op.Client
	id   string
	kind op.AccessTokenType
}

func (r robot) GetID() string                       { return r.id }
func (r robot) AccessTokenType() op.AccessTokenType { return r.kind }

type store struct {
	*storage.Storage
	directory string
}

func (s store) keys() ([]key, error) {
	files, err := filepath.Glob(filepath.Join(s.directory, "*.pem"))
	if err != nil {
		return nil, err
	}
	sort.Strings(files)
	var keys []key
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		block, _ := pem.Decode(text)
		if block == nil {
			return nil, errors.New("no PEM")
		}
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key{strings.TrimSuffix(filepath.Base(file), ".pem"), parsed.(*rsa.PrivateKey)})
	}
	return keys, nil
}

func (s store) SigningKey(context.Context) (op.SigningKey, error) {
	keys, err := s.keys()
	if err != nil {
		return nil, err
	}
	return signing{keys[len(keys)-1]}, nil
}

func (s store) KeySet(context.Context) ([]op.Key, error) {
	keys, err := s.keys()
	set := make([]op.Key, 0, len(keys))
	for _, each := range keys {
		set = append(set, public{each})
	}
	return set, err
}

func (s store) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	client, err := s.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	return jwtClient{client}, nil
}

func (s store) ClientCredentials(ctx context.Context, id, secret string) (op.Client, error) {
	kinds := map[string]op.AccessTokenType{"robot": op.AccessTokenTypeJWT, "opaque": op.AccessTokenTypeBearer}
	kind, ok := kinds[id]
	if !ok {
		return nil, errors.New("unknown client")
	}
	client, err := s.Storage.ClientCredentials(ctx, "sid1", secret)
	return robot{client, id, kind}, err
}

func (s store) ClientCredentialsTokenRequest(_ context.Context, id string, scopes []string) (op.TokenRequest, error) {
	if id == "opaque" {
		id = "id1" // the example only introspects tokens of its users
	}
	return &oidc.JWTTokenRequest{Subject: id, Audience: []string{audience, "web"}, Scopes: scopes}, nil
}

func main() {
	address, directory, callback := os.Args[1], os.Args[2], os.Args[3]
	listener, err := net.Listen("tcp", address)
	if err != nil {
		panic(err)
	}
	issuer := "http://" + listener.Addr().String()
	storage.RegisterClients(storage.WebClient("web", "secret", callback))
	stored := store{storage.NewStorage(storage.NewUserStore(issuer)), directory}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	fmt.Println(issuer)
	panic(http.Serve(listener, exampleop.SetupServer(issuer, stored, quiet, false)))
}
