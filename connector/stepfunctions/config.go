package stepfunctions

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Config defines a connector of type stepfunctions.
type Config struct {
	// Type is stepfunctions.
	Type string `yaml:"type"`
	// Tenants lists the tenants that may use the connector; by default, only the tenant named
	// default.
	Tenants []string `yaml:"tenants"`
	// Region is the AWS Region, such as eu-west-1.
	Region string `yaml:"region" form:"first"`
	// Account is the AWS account's id: 12 digits.
	Account string `yaml:"account" form:"first"`
	// Partition is aws (the default), aws-cn or aws-us-gov.
	Partition string `yaml:"partition"`
	// Credentials sign the requests.
	Credentials Credentials `yaml:"credentials" form:"first"`
	// Endpoint replaces https://states.REGION.amazonaws.com.
	Endpoint string `yaml:"endpoint"`
	// AllowPrivate permits internal addresses, and credentials over plain http.
	AllowPrivate bool `yaml:"allow_private"`
	// Timeout limits a call with its reads; 30s by default.
	Timeout gatehouse.Span `yaml:"timeout"`
	// StateMachines are the state machines that actions can name, by their names at AWS.
	StateMachines map[string]StateMachine `yaml:"state_machines" form:"first"`
	// Operations declares levels of send_task_success and send_task_failure.
	Operations map[string]Operation `yaml:"operations"`
}

// Credentials name the secrets of an IAM user or role.
type Credentials struct {
	// AccessKeyID is the secret with the access key's id.
	AccessKeyID connector.Secret `yaml:"access_key_id"`
	// SecretAccessKey is the secret with the secret access key.
	SecretAccessKey connector.Secret `yaml:"secret_access_key"`
	// SessionToken is the secret with the token of temporary credentials.
	SessionToken *connector.Secret `yaml:"session_token"`
}

// StateMachine is a standard workflow.
type StateMachine struct {
	// Input is a JSON Schema for the input of start_execution.
	Input map[string]any `yaml:"input"`
	// Floor is the minimum level of start_execution; 3 by default.
	Floor gatehouse.RiskLevel `yaml:"floor"`
}

// Operation holds an operator's declarations for an operation.
type Operation struct {
	// Floor is the minimum level; 3 by default.
	Floor gatehouse.RiskLevel `yaml:"floor"`
}
