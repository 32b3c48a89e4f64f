package content

import "strings"

// The formats, which are the columns of the tables below.
const (
	dotNet = iota
	python
	goFramework
	shapes
)

// kind identifies the kind of a JSON object.
type kind uint8

const (
	unknownKind kind = iota
	textKind
	reasoningKind
	dataKind
	uriKind
	errorKind
	usageKind
	callKind
	resultKind
	mcpCallKind
	mcpResultKind
	toolRequestKind
	toolResponseKind
	toolEditKind
	alwaysKind
	textRequestKind
	textResponseKind
	inputRequestKind
	inputResponseKind
	hostedKind
	messageKind
	countsKind
	hostedMCPKind // Python's form of an MCPCall in an approval
	kinds
)

// kindNames lists the discriminators. It is empty for objects without a discriminator.
var kindNames = [kinds][shapes]string{
	textKind:          {"text", "text", "text"},
	reasoningKind:     {"reasoning", "text_reasoning", "reasoning"},
	dataKind:          {"data", "data", "data"},
	uriKind:           {"uri", "uri", "uri"},
	errorKind:         {"error", "error", "error"},
	usageKind:         {"usage", "usage", "usage"},
	callKind:          {"functionCall", "function_call", "functionCall"},
	resultKind:        {"functionResult", "function_result", "functionResult"},
	mcpCallKind:       {"mcpServerToolCall", "mcp_server_tool_call", "mcpServerToolCall"},
	mcpResultKind:     {"mcpServerToolResult", "mcp_server_tool_result", "mcpServerToolResult"},
	toolRequestKind:   {"toolApprovalRequest", "function_approval_request", "toolApprovalRequest"},
	toolResponseKind:  {"toolApprovalResponse", "function_approval_response", "toolApprovalResponse"},
	toolEditKind:      {"toolApprovalEdit", "tool_approval_edit", "toolApprovalEdit"},
	alwaysKind:        {"alwaysApproveToolApprovalResponse", "", "alwaysApproveToolApprovalResponse"},
	textRequestKind:   {"textApprovalRequest", "text_approval_request", "textApprovalRequest"},
	textResponseKind:  {"textApprovalResponse", "text_approval_response", "textApprovalResponse"},
	inputRequestKind:  {"structuredInputRequest", "structured_input_request", "structuredInputRequest"},
	inputResponseKind: {"structuredInputResponse", "structured_input_response", "structuredInputResponse"},
	messageKind:       {"", "message", ""},
	hostedMCPKind:     {"", "function_call", ""},
}

// hostedNames lists the calls of a service that are allowed in an approval. The first column is
// the Kind of the HostedCall.
var hostedNames = [][shapes]string{
	{"codeInterpreterToolCall", "code_interpreter_tool_call", "codeInterpreterToolCall"},
	{"imageGenerationToolCall", "image_generation_tool_call", "imageGenerationToolCall"},
	{"webSearchToolCall", "web_search_tool_call", "webSearchToolCall"},
	{"toolCall", "tool_call", "toolCall"},
}

// field identifies a member that some kind of object has.
type field uint8

const (
	noField  field = iota
	oddField       // a known name in a spelling that only some readers accept
	typeField
	textField
	protectedField
	uriField
	mediaTypeField
	nameField
	messageField
	codeField
	errorDetailsField
	usageField
	inputField
	outputField
	totalField
	callIDField
	argumentsField
	informationalField
	resultField
	toolNameField
	serverNameField
	hostedField
	outputsField
	requestIDField
	toolCallField
	confirmationField
	askingField
	approvedField
	reasonField
	editedField
	innerField
	alwaysToolField
	alwaysArgumentsField
	schemaField
	structuredField
	declinedField
	propertiesField
	roleField
	authorField
	createdField
	messageIDField
	contentsField
	fields
)

// fieldNames lists the names of the members. It is empty if a format doesn't have the member.
var fieldNames = [fields][shapes]string{
	typeField:            {"$type", "type", "Type"},
	textField:            {"text", "text", "Text"},
	protectedField:       {"protectedData", "protected_data", "ProtectedData"},
	uriField:             {"uri", "uri", "URI"},
	mediaTypeField:       {"mediaType", "media_type", "MediaType"},
	nameField:            {"name", "name", "Name"},
	messageField:         {"message", "message", "Message"},
	codeField:            {"errorCode", "error_code", "ErrorCode"},
	errorDetailsField:    {"details", "error_details", "Details"},
	usageField:           {"details", "usage_details", "Details"},
	inputField:           {"inputTokenCount", "input_token_count", "InputTokenCount"},
	outputField:          {"outputTokenCount", "output_token_count", "OutputTokenCount"},
	totalField:           {"totalTokenCount", "total_token_count", "TotalTokenCount"},
	callIDField:          {"callId", "call_id", "CallID"},
	argumentsField:       {"arguments", "arguments", "Arguments"},
	informationalField:   {"informationalOnly", "informational_only", "InformationalOnly"},
	resultField:          {"result", "result", "Result"},
	toolNameField:        {"name", "tool_name", "Name"},
	serverNameField:      {"serverName", "server_name", "ServerName"},
	hostedField:          {"", "hosted", ""},
	outputsField:         {"outputs", "output", "Outputs"},
	requestIDField:       {"requestId", "id", "RequestID"},
	toolCallField:        {"toolCall", "function_call", "ToolCall"},
	confirmationField:    {"requiresConfirmation", "", "RequiresConfirmation"},
	askingField:          {"", "user_input_request", ""},
	approvedField:        {"approved", "approved", "Approved"},
	reasonField:          {"reason", "reason", "Reason"},
	editedField:          {"editedCall", "edited_call", "EditedCall"},
	innerField:           {"innerResponse", "", "innerResponse"},
	alwaysToolField:      {"alwaysApproveTool", "", "AlwaysApproveTool"},
	alwaysArgumentsField: {"alwaysApproveToolWithArguments", "", "AlwaysApproveToolWithArguments"},
	schemaField:          {"schema", "schema", "Schema"},
	structuredField:      {"structuredData", "structured_data", "StructuredData"},
	declinedField:        {"declined", "declined", "Declined"},
	propertiesField:      {"additionalProperties", "additional_properties", "AdditionalProperties"},
	roleField:            {"role", "role", "Role"},
	authorField:          {"authorName", "author_name", "AuthorName"},
	createdField:         {"createdAt", "", "CreatedAt"},
	messageIDField:       {"messageId", "message_id", "ID"},
	contentsField:        {"contents", "contents", "Contents"},
}

// kindFields lists the members of each kind, without its discriminator and properties.
var kindFields = [kinds][]field{
	textKind:          {textField},
	reasoningKind:     {textField, protectedField},
	dataKind:          {uriField, mediaTypeField, nameField},
	uriKind:           {uriField, mediaTypeField},
	errorKind:         {messageField, codeField, errorDetailsField},
	usageKind:         {usageField},
	callKind:          {callIDField, nameField, argumentsField, informationalField},
	resultKind:        {callIDField, resultField},
	mcpCallKind:       {callIDField, toolNameField, serverNameField, argumentsField},
	mcpResultKind:     {callIDField, outputsField},
	toolRequestKind:   {requestIDField, toolCallField, confirmationField, askingField},
	toolResponseKind:  {requestIDField, approvedField, toolCallField, reasonField, editedField},
	toolEditKind:      {requestIDField, approvedField, toolCallField, reasonField, editedField},
	alwaysKind:        {innerField, alwaysToolField, alwaysArgumentsField},
	textRequestKind:   {requestIDField, textField, askingField},
	textResponseKind:  {requestIDField, approvedField, reasonField},
	inputRequestKind:  {requestIDField, textField, schemaField, askingField},
	inputResponseKind: {requestIDField, structuredField, declinedField, reasonField},
	hostedKind:        {callIDField},
	messageKind:       {roleField, contentsField, authorField, createdField, messageIDField},
	countsKind:        {inputField, outputField, totalField},
	hostedMCPKind:     {callIDField, nameField, argumentsField, serverNameField, hostedField},
}

// olderKinds maps the discriminators of .NET releases before 10.4 to the kind of call that they
// are about.
var olderKinds = map[string]kindRef{
	"functionApprovalRequest":       {kind: toolRequestKind, call: callKind},
	"functionApprovalResponse":      {kind: toolResponseKind, call: callKind},
	"mcpServerToolApprovalRequest":  {kind: toolRequestKind, call: mcpCallKind},
	"mcpServerToolApprovalResponse": {kind: toolResponseKind, call: mcpCallKind},
}

// olderFields lists member names of .NET releases and drafts before 10.4.
var olderFields = map[field][]string{
	requestIDField: {"id", "approvalId"},
	toolCallField:  {"functionCall"},
	toolNameField:  {"toolName"},
	outputsField:   {"output"},
}

// kindRef is the meaning of a discriminator.
type kindRef struct {
	kind   kind
	call   kind   // the only kind of call that an older approval can be about
	hosted string // Kind of a HostedCall
}

type member struct {
	name  string
	field field
}

// wire is one format, built from the tables.
type wire struct {
	shape   int
	fold    bool // readers of this format ignore case
	kinds   map[string]kindRef
	members [kinds][]member
}

var wires = [shapes]*wire{newWire(dotNet, true), newWire(python, false), newWire(goFramework, true)}

func newWire(shape int, fold bool) *wire {
	w := &wire{
		shape: shape,
		fold:  fold,
		kinds: map[string]kindRef{},
	}
	for k := textKind; k <= inputResponseKind; k++ {
		if name := kindNames[k][shape]; name != "" {
			w.kinds[name] = kindRef{kind: k}
		}
	}
	for _, names := range hostedNames {
		w.kinds[names[shape]] = kindRef{kind: hostedKind, hosted: names[dotNet]}
	}
	if shape == dotNet {
		for name, ref := range olderKinds {
			w.kinds[name] = ref
		}
	}
	for k := range w.members {
		w.members[k] = w.membersOf(kind(k))
	}
	return w
}

func (w *wire) membersOf(k kind) []member {
	all := append([]field(nil), kindFields[k]...)
	if k != countsKind {
		all = append(all, propertiesField)
	}
	if k != countsKind && (k != messageKind || w.shape == python) {
		all = append([]field{typeField}, all...)
	}
	if k == messageKind && w.shape == python {
		all = append(all, textField) // used by older releases
	}
	var out []member
	for _, f := range all {
		if name := w.name(f); name != "" {
			out = append(out, member{name, f})
		}
	}
	return append(out, w.olderMembers(all)...)
}

func (w *wire) olderMembers(all []field) []member {
	var out []member
	for _, f := range all {
		for _, name := range olderFields[f] {
			if w.shape == dotNet {
				out = append(out, member{name, f})
			}
		}
	}

	return out
}

func (w *wire) name(f field) string { return fieldNames[f][w.shape] }

// field returns the member with the given key, or noField if the kind doesn't have one.
func (w *wire) field(k kind, key string) field {
	for _, m := range w.members[k] {
		if m.name == key {
			return m.field
		}
	}
	if !w.fold {
		return noField
	}
	for _, m := range w.members[k] {
		if strings.EqualFold(m.name, key) {
			return w.folded(m, key)
		}
	}
	return noField
}

// folded decides about a key that differs from a known name only in case. .NET requires its
// $type to match exactly. Keys with non-ASCII characters are rejected, because case folding of
// these differs between readers.
func (w *wire) folded(m member, key string) field {
	if len(key) != len(m.name) || (m.field == typeField && w.shape == dotNet) {
		return oddField
	}
	return m.field
}

// isType reports whether some reader takes the key for the discriminator.
func (w *wire) isType(key string) bool {
	name := w.name(typeField)
	return key == name || w.fold && strings.EqualFold(key, name)
}
