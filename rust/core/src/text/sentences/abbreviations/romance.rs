//! French, Spanish, Italian and Portuguese.

use super::Words;

pub(super) const FRENCH: Words = Words {
    always: "
        m mm mme mmes mlle mlles me mes dr drs pr prof mgr vve cf p.ex c.-à-d c.à.d càd c.a.d s.a.r
        s.m s.e
    ",
    before_name: "st ste sts stes mt gén col lt cdt cap univ av bd boul env ex",
    before_lower: "
        etc art al chap coll dép éd env fasc fig hab ibid id inéd janv févr avr juil sept oct nov déc
        max min n no nos num obs op p.-s p pp par paragr pag ph préf r.-v réf s.d s.l s.v.p sq sqq
        suiv suppl t tél temp tom vol vs av j.-c apr av.j.-c apr.j.-c n.b
    ",
    starters: "
        le la les l un une des du de il elle ils elles on nous vous je j tu ce c cet cette ces mon ma
        mes son sa ses notre nos leur leurs mais et ou donc or ni car puis ensuite alors ainsi
        aujourd hier demain maintenant ici là qui que quoi quand où comment pourquoi quel quelle si
        comme après avant dans sur sous avec pour par en à au aux ne pas non oui tout tous
    ",
    months: "",
};

pub(super) const SPANISH: Words = Words {
    always: "
        sr sra srta sres sras dr dra dres d dª dña dn prof profa ing lic arq abog mtro mtra p.ej p.e
        excmo excma ilmo ilma rvdo rvda hno hna gral cnel
    ",
    before_name: "sto sta av avda ud uds vd vds ee.uu rr.hh jj.oo ff.aa cc.oo s.a s.l s.m",
    before_lower: "
        etc pág págs p pp núm núms n.º n art arts cap caps fig figs tel teléf tfno vol vols ed eds
        aprox apdo c.p cía máx mín ene febr abr jun jul ago sept oct nov dic a.c d.c a.m p.m
        a.j.c d.j.c km kg c/u izq dcha pza bco depto dpto admón trad ref
    ",
    starters: "
        el la los las un una unos unas él ella ellos ellas yo tú usted ustedes nosotros este esta esto
        estos estas ese esa eso esos esas aquel aquella mi mis su sus nuestro nuestra pero y e o u
        ni que quien cuando donde como cuanto qué quién cuándo dónde cómo por para con sin en a al
        de del desde hasta entre sobre si no sí hoy ayer mañana ahora luego después entonces también
        además aquí allí ya muy todo todos
    ",
    months: "",
};

pub(super) const ITALIAN: Words = Words {
    always: "
        sig sigg sig.ra sig.na sigra dott dott.ssa dr dr.ssa prof prof.ssa ing avv arch geom rag on
        sen egr gent gent.mo gent.ma spett ill.mo mons don p.es ad.es es cfr c.d cd
    ",
    before_name: "s ss sta p.za v.le c.so v f.lli s.p.a s.r.l s.n.c s.a.s",
    before_lower: "
        ecc etc pag pagg p pp n nn num art artt cap capp fig figg tab vol voll ed tel cell fax
        ca max min gen febbr apr magg giu lug ag sett ott dic a.c d.c c.m u.s seg segg sgg op.cit
        loc.cit sc km kg lit rif all
    ",
    starters: "
        il lo la i gli le un uno una egli ella lui lei noi voi loro io tu questo questa questi queste
        quello quella quelli quelle mio mia suo sua nostro nostra ma e o però quindi poi dopo prima
        che chi quando dove come perché cosa quale se non sì no di da in con su per tra fra al allo
        alla del dello della nel nella sul sulla oggi ieri domani ora adesso qui qua lì là anche
        tutto tutti è
    ",
    months: "",
};

pub(super) const PORTUGUESE: Words = Words {
    always: "
        sr sra srs sras srta dr dra drs d dª prof profa prof.ª eng engª enga arq adv exmo exma ilmo
        ilma pe p.ex v.g
    ",
    before_name: "sto sta av r gal cel ten cap trav pça ltda s.a",
    before_lower: "
        etc pág págs p pp n nº num núm art arts cap caps fig figs tel vol vols ed eds aprox apto cia
        máx mín jan fev mar abr mai jun jul ago set out nov dez a.c d.c séc sécs km kg obs
        ref trad ss
    ",
    starters: "
        o a os as um uma uns umas ele ela eles elas eu tu você vocês nós este esta isto estes estas
        esse essa isso esses essas aquele aquela aquilo meu minha seu sua nosso nossa mas e ou porém
        então depois antes que quem quando onde como porque por para com sem em no na nos nas de do
        da dos das desde até entre sobre se não sim hoje ontem amanhã agora aqui ali lá também já
        muito tudo todos é
    ",
    months: "",
};
