package main
import ("testing";"fmt";"time";"github.com/gatehouse-dev/gatehouse")
func TestZZ(t *testing.T){
 n:=2; _ = n
 now:=time.Date(2026,11,21,1,0,0,0,time.UTC)
 a:=&gatehouse.Action{ID:"act_01a1fb990",Status:"pending",Digest:"sha256:83da95ad0f5cafe0f691f712530671d6911a319bd9d251ec39fc8f699fe2e0cc",ProposedBy:"pricing-bot",ProposedAt:now.Add(-5*time.Minute),Fingerprint:"9f00",
  Approval:&gatehouse.Approval{Required:1,Roles:[]gatehouse.Role{"approver"},ExpiresAt:now.Add(3*time.Hour)},
  Proposal:gatehouse.Proposal{ActionType:"price_change",Connector:"shop",Operation:"update",RiskLevel:3,Rationale:"Supplier raised its cost by 25 %.\nSee the mail of Tuesday \u202eevil",
   Target:gatehouse.Target{EntityType:"item",EntityRef:"SKU-1042",Version:"7"},
   CurrentState:`{"cost":"8.00","currency":"USD","description":"Oiled oak lamp\nHeight 24 cm\nWith a switch\nMade in Spain\nCable 2 m\nWarranty 2 years\nDimmable\nEU plug","price":"10.00","tags":["lamp","oak"]}`,
   ProposedChange:`{"cost":"9.10","description":"Oiled oak lamp\nHeight 24 cm\nWith a switch\nMade in Spain\nCable 2 m\nWarranty 3 years\nDimmable\nEU plug\nE27","price":"12.50","tags":["sale","lamp","oak"]}`,
   Evaluations:[]gatehouse.Evaluation{{Name:"margin",Kind:"deterministic",Result:"pass",Confidence:"0.90"}},
   ArtifactDiff:&gatehouse.ArtifactDiff{Type:"unified",Text:"--- a\n+++ b\n@@ -1,2 +1,2 @@\n x\n-old\n+new\n"}}}
 g,_,_:=testGlobals(t)
 for _,sz:=range [][2]int{{100,48},{38,30}} {
 m:=&reviewer{g:g,me:&gatehouse.Principal{},now:func()time.Time{return now},token:"x",width:sz[0],height:sz[1],armed:true,items:[]*item{{action:a}}}
 m.Init(); m.armed=true
 fmt.Println(m.View().Content)
 a.Approval.Excluded=nil
 m.approve(m.items[0]); m.proceed()
 b,_:=m.bar(); for _,l:=range b {fmt.Println(l)}
 }
}
