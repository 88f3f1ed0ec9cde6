// Package kubernetes changes objects of a Kubernetes cluster by its API
// (https://kubernetes.io/docs/reference/using-api/api-concepts/).
//
// Every operation except create is of class B. It reads the object, refuses a mismatch with the
// proposal, and names the object's uid and resourceVersion in the write: the server answers 409 if
// the object was written since. The uid is needed in addition, because an apply with a version
// alone would create an object that does not exist. A version conflict is transient, because
// controllers write an object's status all the time: the next attempt compares again.
//
// A creation is of class A. A name can exist only once, and the new object has an annotation with
// the call's key, which identifies an earlier call's object. A found object is compared with the
// approved one, too.
//
// apply is a server-side apply (https://kubernetes.io/docs/reference/using-api/server-side-apply/):
// the server removes fields that this field manager set earlier and no longer names. People approve
// the change alone, so a dry run precedes each write (dryRun=All, including admission). Except for a
// delete, it must show the approved values; that of an apply must not change any other previous value.
// If a webhook of the cluster does not support dry runs, only scale, restart and delete are sent,
// without one.
package kubernetes
