// Package kubernetes changes objects of a Kubernetes cluster by its API
// (https://kubernetes.io/docs/reference/using-api/api-concepts/).
//
// Every operation but create is of class B. It reads the object, refuses when it is not as
// the proposal says, and names the object's uid and resourceVersion in the write: the
// server answers 409 when anybody has written since. The uid is needed beside the version,
// because an apply with a version alone makes an object that is not there. A conflict of
// versions is transient, since controllers write the status of an object all the time: the
// next attempt compares anew.
//
// A creation is of class A. A name exists once, and the new object has an annotation with
// the key of the call, by which an earlier call's object is known.
//
// apply is a server-side apply (https://kubernetes.io/docs/reference/using-api/server-side-apply/):
// the server removes what this field manager set earlier and does not name any more. What
// people approve is the change alone. So a dry run precedes each write (dryRun=All, through
// admission). It has to show the approved values, and no other value that there was before
// may differ in it.
package kubernetes
