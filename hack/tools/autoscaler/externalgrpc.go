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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
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
	gpuKnown   bool // asked until it succeeds once
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
	return &grpcCloud{connection: connection, timeout: timeout}, err
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

// Options of one group, with the defaults of flags, as releases since 1.35 send them.
func (c *grpcCloud) Options(ctx context.Context, group string) error {
	defaults := &wire.NodeGroupAutoscalingOptions{
		ScaleDownUtilizationThreshold: threshold, ScaleDownGpuUtilizationThreshold: threshold,
		ScaleDownUnneededDuration: durationpb.New(10 * time.Minute), ScaleDownUnreadyDuration: durationpb.New(20 * time.Minute),
		MaxNodeProvisionDuration: durationpb.New(15 * time.Minute),
	}
	request := &wire.NodeGroupAutoscalingOptionsRequest{Id: group, Defaults: defaults}
	err := c.call(ctx, "NodeGroupGetOptions", request, &wire.NodeGroupAutoscalingOptionsResponse{})
	if status.Code(err) == codes.Unimplemented {
		return nil
	}
	return err
}

func (c *grpcCloud) GPU(ctx context.Context) error {
	if c.gpuKnown {
		return nil
	}
	if err := c.call(ctx, "GPULabel", &wire.GPULabelRequest{}, &wire.GPULabelResponse{}); err != nil {
		return err
	}
	err := c.call(ctx, "GetAvailableGPUTypes", &wire.GetAvailableGPUTypesRequest{}, &wire.GetAvailableGPUTypesResponse{})
	c.gpuKnown = err == nil
	return err
}

func (c *grpcCloud) NodePrice(ctx context.Context, node *corev1.Node) (float64, error) {
	now := time.Now()
	request := &wire.PricingNodePriceRequest{
		Node: told(node), StartTimestamp: timestamppb.New(now), EndTimestamp: timestamppb.New(now.Add(time.Hour)),
	}
	answer := &wire.PricingNodePriceResponse{}
	err := c.call(ctx, "PricingNodePrice", request, answer)
	return answer.Price, err
}

func (c *grpcCloud) PodPrice(ctx context.Context, pod *corev1.Pod) (float64, error) {
	now := time.Now()
	content, err := pod.Marshal()
	if err != nil {
		return 0, err
	}
	request := &wire.PricingPodPriceRequest{
		PodBytes: content, StartTimestamp: timestamppb.New(now), EndTimestamp: timestamppb.New(now.Add(time.Hour)),
	}
	answer := &wire.PricingPodPriceResponse{}
	err = c.call(ctx, "PricingPodPrice", request, answer)
	return answer.Price, err
}

func (c *grpcCloud) Cleanup(ctx context.Context) error {
	return c.call(ctx, "Cleanup", &wire.CleanupRequest{}, &wire.CleanupResponse{})
}

func told(node *corev1.Node) *wire.ExternalGrpcNode {
	return &wire.ExternalGrpcNode{
		ProviderID: node.Spec.ProviderID, Name: node.Name, Labels: node.Labels, Annotations: node.Annotations,
	}
}
