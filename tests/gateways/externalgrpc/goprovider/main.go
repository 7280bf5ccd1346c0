// goprovider is a provider of node groups for tests of externalgrpc's caller. It knows the protocol from the .proto file
// alone: messages are made from its descriptors (a FileDescriptorSet), and no code of Nodewright is used.
//
// It has one group, "pool:a/1", of 0 to 5 instances of 4 cores, lives in memory, and implements no optional method but the
// template. Instances run as soon as they are asked for. It prints its address on the first line of standard output.
package main

import (
	"fmt"
	"net"
	"os"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

const (
	group   = "pool:a/1"
	largest = 5
)

type provider struct {
	mutex     sync.Mutex
	methods   map[string]protoreflect.MethodDescriptor
	instances []string
	made      int
}

func main() {
	content, err := os.ReadFile(os.Args[1])
	fail(err)
	set := &descriptorpb.FileDescriptorSet{}
	fail(proto.Unmarshal(content, set))
	files, err := protodesc.NewFiles(set)
	fail(err)
	found := &provider{methods: map[string]protoreflect.MethodDescriptor{}}
	files.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				method := service.Methods().Get(j)
				found.methods[fmt.Sprintf("/%s/%s", service.FullName(), method.Name())] = method
			}
		}
		return true
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	fail(err)
	fmt.Println(listener.Addr())
	fail(grpc.NewServer(grpc.UnknownServiceHandler(found.handle)).Serve(listener))
}

func (p *provider) handle(_ any, stream grpc.ServerStream) error {
	name, _ := grpc.MethodFromServerStream(stream)
	method := p.methods[name]
	if method == nil {
		return status.Error(codes.Unimplemented, name)
	}
	request, answer := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output())
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	p.mutex.Lock()
	err := p.answer(string(method.Name()), request, answer)
	p.mutex.Unlock()
	if err != nil {
		return err
	}
	return stream.SendMsg(answer)
}

func (p *provider) answer(name string, request, answer *dynamicpb.Message) error {
	switch name {
	case "Refresh", "Cleanup":
	case "NodeGroups":
		list := answer.Mutable(field(answer, "nodeGroups")).List()
		each := list.AppendMutable().Message()
		fill(each)
	case "NodeGroupForNode":
		node := request.Get(field(request, "node")).Message()
		id := node.Get(node.Descriptor().Fields().ByName("providerID")).String()
		if p.index(id) >= 0 {
			fill(answer.Mutable(field(answer, "nodeGroup")).Message())
		}
	case "NodeGroupTargetSize":
		answer.Set(field(answer, "targetSize"), protoreflect.ValueOfInt32(int32(len(p.instances))))
	case "NodeGroupNodes":
		list := answer.Mutable(field(answer, "instances")).List()
		for _, id := range p.instances {
			each := list.AppendMutable().Message()
			each.Set(each.Descriptor().Fields().ByName("id"), protoreflect.ValueOfString(id))
			state := each.Mutable(each.Descriptor().Fields().ByName("status")).Message()
			state.Set(state.Descriptor().Fields().ByName("instanceState"), protoreflect.ValueOfEnum(1))
		}
	case "NodeGroupIncreaseSize":
		delta := int(request.Get(field(request, "delta")).Int())
		if delta <= 0 || len(p.instances)+delta > largest {
			return status.Error(codes.ResourceExhausted, "the group has its maximum")
		}
		for range delta {
			p.made++
			p.instances = append(p.instances, fmt.Sprintf("goprovider://zone-1/n-%d", p.made))
		}
	case "NodeGroupDeleteNodes":
		nodes := request.Get(field(request, "nodes")).List()
		for i := range nodes.Len() {
			node := nodes.Get(i).Message()
			at := p.index(node.Get(node.Descriptor().Fields().ByName("providerID")).String())
			if at < 0 {
				return status.Error(codes.InvalidArgument, "not of this group")
			}
			p.instances = append(p.instances[:at], p.instances[at+1:]...)
		}
	case "NodeGroupTemplateNodeInfo":
		answer.Set(field(answer, "nodeBytes"), protoreflect.ValueOfBytes(node()))
	default:
		return status.Error(codes.Unimplemented, name)
	}
	return nil
}

func (p *provider) index(id string) int {
	for i, each := range p.instances {
		if each == id {
			return i
		}
	}
	return -1
}

func fill(message protoreflect.Message) {
	fields := message.Descriptor().Fields()
	message.Set(fields.ByName("id"), protoreflect.ValueOfString(group))
	message.Set(fields.ByName("maxSize"), protoreflect.ValueOfInt32(largest))
}

func field(message *dynamicpb.Message, name protoreflect.Name) protoreflect.FieldDescriptor {
	return message.Descriptor().Fields().ByName(name)
}

// node is a core/v1 Node on the wire: status (3) with allocatable (2), a map of quantities, and labels (11) in metadata (1).
func node() []byte {
	var state []byte
	for name, amount := range map[string]string{"cpu": "4", "memory": "8Gi", "pods": "110"} {
		quantity := text(nil, 1, amount)
		state = nested(state, 2, nested(text(nil, 1, name), 2, quantity))
	}
	labels := text(text(nil, 1, "pool"), 2, "a")
	found := nested(nil, 1, nested(text(nil, 1, "template"), 11, labels))
	return nested(found, 3, state)
}

func text(to []byte, number protowire.Number, value string) []byte {
	return nested(to, number, []byte(value))
}

func nested(to []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), value)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
