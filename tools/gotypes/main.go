// Command gotypes writes how the Go types of the Kubernetes API encode as JSON: names, types and rules, no prose.
//
//	go run . -pod ../../src/lwskit/api/pod-types.json -builtin ../../src/lwskit/embedded/builtin-types.json
//	go run . -check …   compares with the files instead and exits 1 on a difference
//
// The table's format is described in src/lwskit/runtime/typed.py.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"sort"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// field is one JSON field of a struct; the JSON names are those of the table's format.
type field struct {
	Type        string          `json:"t"`
	OmitEmpty   int             `json:"e,omitempty"`
	OmitZero    int             `json:"z,omitempty"`
	Required    int             `json:"r,omitempty"`
	ListType    string          `json:"l,omitempty"`
	ListMapKeys []string        `json:"k,omitempty"`
	Strategy    string          `json:"s,omitempty"`
	MergeKey    string          `json:"m,omitempty"`
	MapType     string          `json:"a,omitempty"`
	Default     json.RawMessage `json:"d,omitempty"`
	Constant    string          `json:"c,omitempty"`
	Number      string          `json:"n,omitempty"`
}

// fieldList is the fields of a struct by JSON name, in the order of their declaration.
type fieldList struct {
	names  []string
	byName map[string]field
}

func (l *fieldList) put(name string, f field) {
	if _, known := l.byName[name]; !known {
		l.names = append(l.names, name)
	}
	l.byName[name] = f
}

// MarshalJSON writes an object that keeps the order.
func (l *fieldList) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, name := range l.names {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := e.Encode(name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := e.Encode(l.byName[name]); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

type structType struct {
	Atomic int        `json:"atomic,omitempty"`
	Fields *fieldList `json:"fields"`
}

type table struct {
	Source string                `json:"source"`
	Kinds  map[string]string     `json:"kinds,omitempty"`
	Types  map[string]structType `json:"types"`
}

// markers of one struct: of the type itself under "", of its fields by Go name.
type markers map[string][]string

var parsed = map[string]map[string]markers{}

// special types have a JSON form of their own.
var special = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():                               "quantity",
	reflect.TypeFor[intstr.IntOrString]():                              "intorstring",
	reflect.TypeFor[metav1.Time]():                                     "time",
	reflect.TypeFor[metav1.MicroTime]():                                "microtime",
	reflect.TypeFor[metav1.Duration]():                                 "duration",
	reflect.TypeFor[metav1.FieldsV1]():                                 "any",
	reflect.TypeFor[runtime.RawExtension]():                            "any",
	reflect.TypeFor[apiextensionsv1.JSON]():                            "any",
	reflect.TypeFor[apiextensionsv1.JSONSchemaProps]():                 "any",
	reflect.TypeFor[apiextensionsv1.CustomResourceSubresourceStatus](): "any",
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "gotypes:", err)
	os.Exit(1)
}

func typeName(t reflect.Type) string {
	path := t.PkgPath()
	for _, prefix := range []string{
		"k8s.io/apiextensions-apiserver/pkg/apis/", "k8s.io/apimachinery/pkg/apis/", "k8s.io/apimachinery/pkg/", "k8s.io/api/",
	} {
		path = strings.TrimPrefix(path, prefix)
	}
	return strings.ReplaceAll(path, "/", ".") + "." + t.Name()
}

// markersOf reads the comment markers of a package's structs from its source.
func markersOf(t reflect.Type) markers {
	path := t.PkgPath()
	if parsed[path] == nil {
		pkg, err := build.Import(path, ".", build.FindOnly)
		if err != nil {
			fail(err)
		}
		files, err := filepath.Glob(filepath.Join(pkg.Dir, "*.go"))
		if err != nil {
			fail(err)
		}
		found := map[string]markers{}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") || strings.Contains(filepath.Base(name), "generated") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				fail(err)
			}
			collect(file, found)
		}
		parsed[path] = found
	}
	return parsed[path][t.Name()]
}

func collect(file *ast.File, found map[string]markers) {
	lines := func(groups ...*ast.CommentGroup) (out []string) {
		for _, group := range groups {
			if group == nil {
				continue
			}
			for _, comment := range group.List {
				text := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//"))
				if strings.HasPrefix(text, "+") {
					out = append(out, strings.TrimSpace(text[1:]))
				}
			}
		}
		return out
	}
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			ts, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			st, ok := ts.Type.(*ast.StructType)
			if !ok {
				continue
			}
			m := markers{"": lines(gen.Doc, ts.Doc)}
			for _, f := range st.Fields.List {
				for _, name := range f.Names {
					m[name.Name] = lines(f.Doc)
				}
			}
			found[ts.Name.Name] = m
		}
	}
}

// walker collects struct types; with numbers it also keeps the field numbers of the binary encoding.
type walker struct {
	types   map[string]structType
	numbers bool
}

// unnumbered stands around the fields of a struct that the binary encoding leaves out.
const unnumbered = "-"

// number is the field number in a protobuf tag, with that of the message around it where a struct is inlined.
func number(sf reflect.StructField, around string) string {
	parts := strings.Split(sf.Tag.Get("protobuf"), ",")
	if len(parts) < 2 || around == unnumbered {
		return ""
	}
	return around + parts[1]
}

func (w *walker) ref(t reflect.Type) string {
	if name, ok := special[t]; ok {
		return name
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + w.ref(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + w.ref(t.Elem())
	case reflect.Map:
		return "map:" + w.ref(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32:
		return "int32"
	case reflect.Int, reflect.Int64:
		return "int64"
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "int64"
	case reflect.Float32, reflect.Float64:
		return "float64"
	case reflect.Interface:
		return "any"
	case reflect.Struct:
		marshaler := reflect.TypeFor[json.Marshaler]()
		if t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
			return "any"
		}
		w.walk(t)
		return typeName(t)
	}
	fail(fmt.Errorf("no rule for type %s", t))
	return ""
}

func (w *walker) walk(t reflect.Type) {
	name := typeName(t)
	if _, done := w.types[name]; done {
		return
	}
	out := structType{Fields: &fieldList{byName: map[string]field{}}}
	w.types[name] = out
	w.fields(t, out.Fields, "")
	for _, m := range markersOf(t)[""] {
		if m == "structType=atomic" || m == "mapType=atomic" {
			out.Atomic = 1
		}
	}
	w.types[name] = out
}

func (w *walker) fields(t reflect.Type, out *fieldList, around string) {
	marks := markersOf(t)
	for i := 0; i < t.NumField(); i++ {
		sf := t.Field(i)
		tag := strings.Split(sf.Tag.Get("json"), ",")
		options := map[string]bool{}
		for _, o := range tag[1:] {
			options[o] = true
		}
		if tag[0] == "" && (options["inline"] || sf.Anonymous) {
			inner := number(sf, around)
			if inner == "" {
				inner = unnumbered
			} else {
				inner += "."
			}
			w.fields(sf.Type, out, inner)
			continue
		}
		if tag[0] == "-" || !sf.IsExported() {
			continue
		}
		if tag[0] == "" {
			fail(fmt.Errorf("%s.%s has no JSON name", t, sf.Name))
		}
		f := field{Type: w.ref(sf.Type), Strategy: sf.Tag.Get("patchStrategy"), MergeKey: sf.Tag.Get("patchMergeKey")}
		if w.numbers {
			f.Number = number(sf, around)
		}
		if options["omitempty"] {
			f.OmitEmpty = 1
		}
		if options["omitzero"] {
			f.OmitZero = 1
		}
		optional := options["omitempty"] || options["omitzero"]
		for _, m := range marks[sf.Name] {
			key, value, _ := strings.Cut(m, "=")
			switch key {
			case "optional":
				optional = true
			case "required":
				optional = false
			case "listType":
				f.ListType = value
			case "listMapKey":
				f.ListMapKeys = append(f.ListMapKeys, strings.Trim(value, `"`))
			case "mapType", "structType":
				if value == "atomic" {
					f.MapType = value
				}
			case "default":
				if name, ok := strings.CutPrefix(value, "ref("); ok {
					f.Constant = constant(strings.TrimSuffix(name, ")"))
				} else {
					f.Default = literal(value)
				}
			}
		}
		if !optional {
			f.Required = 1
		}
		out.put(tag[0], f)
	}
}

// constant gives the value of a constant that a default marker names.
func constant(name string) string {
	constants := map[string]string{
		"AzureSharedBlobDisk":           string(corev1.AzureSharedBlobDisk),
		"AzureDataDiskCachingReadWrite": string(corev1.AzureDataDiskCachingReadWrite),
	}
	value, known := constants[name]
	if !known {
		fail(fmt.Errorf("default refers to the unknown constant %s", name))
	}
	return value
}

// literal gives the JSON of a default marker.
func literal(value string) json.RawMessage {
	if !json.Valid([]byte(value)) {
		fail(fmt.Errorf("default %s is no JSON", value))
	}
	return json.RawMessage(value)
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, dep := range info.Deps {
			if dep.Path == "k8s.io/api" {
				return dep.Path + " " + dep.Version
			}
		}
	}
	return "k8s.io/api"
}

func podTable() table {
	w := &walker{types: map[string]structType{}}
	w.walk(reflect.TypeFor[corev1.PodTemplateSpec]())
	w.walk(reflect.TypeFor[corev1.PersistentVolumeClaim]())
	w.walk(reflect.TypeFor[appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy]())
	return table{Source: version(), Types: w.types}
}

func builtinTable() table {
	w := &walker{types: map[string]structType{}, numbers: true}
	kinds := map[string]string{}
	add := func(apiVersion string, objects ...any) {
		for _, o := range objects {
			t := reflect.TypeOf(o)
			w.walk(t)
			kinds[apiVersion+"/"+t.Name()] = typeName(t)
		}
	}
	add("v1", corev1.Pod{}, corev1.Service{}, corev1.Node{}, corev1.Namespace{}, corev1.ConfigMap{}, corev1.Secret{},
		corev1.ServiceAccount{}, corev1.PersistentVolumeClaim{}, corev1.PersistentVolume{}, corev1.Event{}, corev1.Endpoints{},
		corev1.ResourceQuota{}, corev1.LimitRange{}, corev1.PodTemplate{}, corev1.ReplicationController{})
	add("apps/v1", appsv1.StatefulSet{}, appsv1.Deployment{}, appsv1.ReplicaSet{}, appsv1.ControllerRevision{}, appsv1.DaemonSet{})
	add("events.k8s.io/v1", eventsv1.Event{})
	add("coordination.k8s.io/v1", coordinationv1.Lease{})
	add("discovery.k8s.io/v1", discoveryv1.EndpointSlice{})
	add("policy/v1", policyv1.PodDisruptionBudget{})
	add("apiextensions.k8s.io/v1", apiextensionsv1.CustomResourceDefinition{})
	add("admissionregistration.k8s.io/v1", admissionregistrationv1.MutatingWebhookConfiguration{},
		admissionregistrationv1.ValidatingWebhookConfiguration{})
	add("rbac.authorization.k8s.io/v1", rbacv1.Role{}, rbacv1.ClusterRole{}, rbacv1.RoleBinding{}, rbacv1.ClusterRoleBinding{})
	add("scheduling.k8s.io/v1", schedulingv1.PriorityClass{})
	add("storage.k8s.io/v1", storagev1.StorageClass{})
	add("batch/v1", batchv1.Job{}, batchv1.CronJob{})
	add("networking.k8s.io/v1", networkingv1.Ingress{}, networkingv1.IngressClass{}, networkingv1.NetworkPolicy{})
	add("autoscaling/v2", autoscalingv2.HorizontalPodAutoscaler{})
	add("autoscaling/v1", autoscalingv1.Scale{})
	add("v1", corev1.Binding{}, metav1.DeleteOptions{})
	add("policy/v1", policyv1.Eviction{})
	add("authentication.k8s.io/v1", authenticationv1.TokenReview{}, authenticationv1.TokenRequest{},
		authenticationv1.SelfSubjectReview{})
	add("authorization.k8s.io/v1", authorizationv1.SubjectAccessReview{}, authorizationv1.LocalSubjectAccessReview{},
		authorizationv1.SelfSubjectAccessReview{}, authorizationv1.SelfSubjectRulesReview{})
	return table{Source: version(), Kinds: kinds, Types: w.types}
}

// encode writes one line for each type, so that a change is a small difference.
func encode(t table) []byte {
	var b bytes.Buffer
	compact := func(v any) string {
		var line bytes.Buffer
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			fail(err)
		}
		return strings.TrimSpace(line.String())
	}
	fmt.Fprintf(&b, "{\"source\":%s,\n", compact(t.Source))
	if t.Kinds != nil {
		fmt.Fprintf(&b, "\"kinds\":%s,\n", compact(t.Kinds))
	}
	b.WriteString("\"types\":{\n")
	names := make([]string, 0, len(t.Types))
	for name := range t.Types {
		names = append(names, name)
	}
	sort.Strings(names)
	for i, name := range names {
		end := ",\n"
		if i == len(names)-1 {
			end = "\n"
		}
		fmt.Fprintf(&b, "%s:%s%s", compact(name), compact(t.Types[name]), end)
	}
	b.WriteString("}}\n")
	return b.Bytes()
}

func main() {
	pod := flag.String("pod", "", "file for the types of pod and claim templates")
	builtin := flag.String("builtin", "", "file for the types of the built-in kinds")
	check := flag.Bool("check", false, "compare with the files and write nothing")
	flag.Parse()
	for path, make := range map[string]func() table{*pod: podTable, *builtin: builtinTable} {
		if path == "" {
			continue
		}
		want := encode(make())
		if !*check {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				fail(err)
			}
			continue
		}
		have, err := os.ReadFile(path)
		if err != nil {
			fail(err)
		}
		if !bytes.Equal(have, want) {
			fail(fmt.Errorf("%s is not current: run this without -check", path))
		}
	}
}
