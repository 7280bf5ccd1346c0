package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"

	"nodewright/hack/tools/autoscaler/wire"
)

const service = "/clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/"

// cloudConfig is the file of --cloud-config, with the keys that the Cluster Autoscaler knows.
type cloudConfig struct {
	Address string `yaml:"address"`
	Key     string `yaml:"key"`
	Cert    string `yaml:"cert"`
	Cacert  string `yaml:"cacert"`
	Timeout string `yaml:"grpc_timeout"`
}

type grpcCloud struct {
	connection *grpc.ClientConn
	timeout    time.Duration
}

func newGrpcCloud(path string) (*grpcCloud, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	config := cloudConfig{Timeout: "5s"}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	timeout, err := time.ParseDuration(config.Timeout)
	if err != nil {
		return nil, err
	}
	transport, err := transportOf(config)
	if err != nil {
		return nil, err
	}
	connection, err := grpc.NewClient(config.Address, grpc.WithTransportCredentials(transport))
	return &grpcCloud{connection, timeout}, err
}

func transportOf(config cloudConfig) (credentials.TransportCredentials, error) {
	if config.Cert == "" {
		return insecure.NewCredentials(), nil
	}
	host, _, err := net.SplitHostPort(config.Address)
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(config.Cert, config.Key)
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(config.Cacert)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s has no certificate", config.Cacert)
	}
	return credentials.NewTLS(&tls.Config{ServerName: host, Certificates: []tls.Certificate{pair}, RootCAs: pool}), nil
}

func (c *grpcCloud) call(ctx context.Context, name string, request, answer proto.Message) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.connection.Invoke(ctx, service+name, request, answer)
}

func (c *grpcCloud) Refresh(ctx context.Context) error {
	return c.call(ctx, "Refresh", &wire.RefreshRequest{}, &wire.RefreshResponse{})
}

func (c *grpcCloud) NodeGroups(ctx context.Context) ([]Group, error) {
	answer := &wire.NodeGroupsResponse{}
	if err := c.call(ctx, "NodeGroups", &wire.NodeGroupsRequest{}, answer); err != nil {
		return nil, err
	}
	var groups []Group
	for _, each := range answer.NodeGroups {
		groups = append(groups, Group{each.Id, int(each.MinSize), int(each.MaxSize)})
	}
	return groups, nil
}

func (c *grpcCloud) NodeGroupForNode(ctx context.Context, node *corev1.Node) (string, error) {
	answer := &wire.NodeGroupForNodeResponse{}
	err := c.call(ctx, "NodeGroupForNode", &wire.NodeGroupForNodeRequest{Node: told(node)}, answer)
	return answer.GetNodeGroup().GetId(), err
}

func (c *grpcCloud) TargetSize(ctx context.Context, group string) (int, error) {
	answer := &wire.NodeGroupTargetSizeResponse{}
	err := c.call(ctx, "NodeGroupTargetSize", &wire.NodeGroupTargetSizeRequest{Id: group}, answer)
	return int(answer.TargetSize), err
}

func (c *grpcCloud) Nodes(ctx context.Context, group string) ([]Instance, error) {
	answer := &wire.NodeGroupNodesResponse{}
	err := c.call(ctx, "NodeGroupNodes", &wire.NodeGroupNodesRequest{Id: group}, answer)
	var found []Instance
	for _, each := range answer.Instances {
		status := each.GetStatus()
		found = append(found, Instance{each.Id, int32(status.GetInstanceState()), status.GetErrorInfo().GetErrorCode()})
	}
	return found, err
}

func (c *grpcCloud) Template(ctx context.Context, group string) (*corev1.Node, error) {
	answer := &wire.NodeGroupTemplateNodeInfoResponse{}
	if err := c.call(ctx, "NodeGroupTemplateNodeInfo", &wire.NodeGroupTemplateNodeInfoRequest{Id: group}, answer); err != nil {
		return nil, err
	}
	if len(answer.NodeBytes) == 0 {
		return nil, errors.New("a template without a node")
	}
	node := &corev1.Node{}
	return node, node.Unmarshal(answer.NodeBytes)
}

func (c *grpcCloud) IncreaseSize(ctx context.Context, group string, delta int) error {
	request := &wire.NodeGroupIncreaseSizeRequest{Id: group, Delta: int32(delta)}
	return c.call(ctx, "NodeGroupIncreaseSize", request, &wire.NodeGroupIncreaseSizeResponse{})
}

func (c *grpcCloud) DecreaseTargetSize(ctx context.Context, group string, delta int) error {
	request := &wire.NodeGroupDecreaseTargetSizeRequest{Id: group, Delta: int32(delta)}
	return c.call(ctx, "NodeGroupDecreaseTargetSize", request, &wire.NodeGroupDecreaseTargetSizeResponse{})
}

func (c *grpcCloud) DeleteNodes(ctx context.Context, group string, nodes []*corev1.Node) error {
	request := &wire.NodeGroupDeleteNodesRequest{Id: group}
	for _, node := range nodes {
		request.Nodes = append(request.Nodes, told(node))
	}
	return c.call(ctx, "NodeGroupDeleteNodes", request, &wire.NodeGroupDeleteNodesResponse{})
}

func told(node *corev1.Node) *wire.ExternalGrpcNode {
	return &wire.ExternalGrpcNode{
		ProviderID: node.Spec.ProviderID, Name: node.Name, Labels: node.Labels, Annotations: node.Annotations,
	}
}
